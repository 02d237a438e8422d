"""Loops and branches of split values: bodies run on parts, with what they communicate inside."""

import numpy as np
import pytest
from lockstep import parts_of, run_together, whole_of

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    Replicate,
    Shard,
    partition_program,
    report_collectives,
    strict,
)
from argosy_autoparallel.implicit_gathers import ImplicitGatherError
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Program

HEAD = """
program @loops(%x: tensor<[3, 5], float32>, %w: tensor<[5, 5], float32>, %n: tensor<[], int32>) {{
  %zero = builtin.constant() {{value = dense<tensor<[], int32>, 0>}} : tensor<[], int32>
  %one = builtin.constant() {{value = dense<tensor<[], int32>, 1>}} : tensor<[], int32>
  %f = builtin.constant() {{value = dense<tensor<[], float32>, 0.0>}} : tensor<[], float32>
  %still = prim.broadcast(%f) {{shape = (5, 5), axes = ()}} : tensor<[5, 5], float32>
  {body}
}}
"""
PRODUCT = "{lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[3, 5], float32>"
SQUARE = "{lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[5, 5], float32>"
ROWS, SQUARES, INDEX = "tensor<[3, 5], float32>", "tensor<[5, 5], float32>", "tensor<[], int32>"
BODIES = {
    "for": f"""%y = control.for(%zero, %n, %one, %x) : {ROWS}
    region (%i: {INDEX}, %c: {ROWS}) {{
    %p = prim.dot_general(%c, %w) {PRODUCT}
    %q = prim.add(%p, %x) : {ROWS}
    control.yield(%q)
  }}
  return(%y)""",
    "while": f"""%k, %y = control.while(%zero, %x) : {INDEX}, {ROWS}
    region (%i: {INDEX}, %c: {ROWS}) {{
    %go = prim.lt(%i, %n) : tensor<[], bool>
    control.condition(%go)
  }} region (%i1: {INDEX}, %c1: {ROWS}) {{
    %i2 = prim.add(%i1, %one) : {INDEX}
    %p = prim.dot_general(%c1, %w) {PRODUCT}
    control.yield(%i2, %p)
  }}
  return(%y)""",
    "if": f"""%go = prim.lt(%zero, %n) : tensor<[], bool>
  %y = control.if(%go) : {ROWS} region {{
    %p = prim.dot_general(%x, %w) {PRODUCT}
    control.yield(%p)
  }} region {{
    control.yield(%x)
  }}
  return(%y)""",
    "sums": f"""%y = control.for(%zero, %n, %one, %still) : {SQUARES}
    region (%i: {INDEX}, %c: {SQUARES}) {{
    %p = prim.dot_general(%x, %x) {SQUARE}
    %q = prim.add(%c, %p) : {SQUARES}
    control.yield(%q)
  }}
  return(%y)""",
}  # fmt: skip
X, W = (
    np.random.default_rng(i).standard_normal(shape).astype(np.float32) / 3 for i, shape in enumerate([(3, 5), (5, 5)])
)


def run(kind, placements, ranks=(0, 1)):
    """The layout of the value and the report of a rank; the value is compared with one process."""
    source, mesh = Program.parse(HEAD.format(body=BODIES[kind])), ProcessMesh(list(ranks))
    arrays = X, W, np.int32(3)
    layouts = [*(Layout(mesh, [p]) for p in placements), None]
    made = [partition_program(source, layouts, (), rank) for rank in ranks]
    parts = [parts_of(a, at or Layout.replicate(mesh)) for a, at in zip(map(np.asarray, arrays), layouts, strict=True)]
    outputs = run_together([m.program for m in made], list(zip(*parts, strict=True)), ranks)
    (layout,) = made[0].output_layouts
    expected = interpret(source, arrays)[0][0]
    np.testing.assert_allclose(whole_of([o[0] for o in outputs], layout), expected, rtol=1e-4, atol=1e-5)
    return layout.placements[0], report_collectives(made[0].program).collectives


@pytest.mark.parametrize("kind", ["for", "while", "if"])
def test_bodies_run_on_parts(kind):
    """Split rows stay split, uneven ones too, and nothing is communicated."""
    assert run(kind, [Shard(0), Replicate()], (0, 1, 2, 3)) == (Shard(0), ())


@pytest.mark.parametrize("kind", ["for", "while", "if"])
@pytest.mark.parametrize(
    "placements", [(Shard(1), Shard(1)), (Shard(1), Shard(0)), (Replicate(), Shard(0)), (Shard(0), Shard(1))]
)
def test_bodies_communicate(kind, placements):
    """Weights stay split, or are brought where the body needs them, once, before the loop."""
    _, collectives = run(kind, placements)
    assert sum(not c.repeated for c in collectives) <= 1


def test_terms_of_a_product_are_summed_in_the_body():
    """Split columns stay split: the sum over ranks is scattered in each step."""
    placement, collectives = run("for", [Shard(1), Replicate()])
    assert placement == Shard(1)
    assert [(c.kind, c.repeated) for c in collectives] == [("reduce_scatter", True)]


def test_strict_refuses_a_gather_within_a_body():
    """As anywhere else."""
    with strict(), pytest.raises(ImplicitGatherError, match=r"prim.dot_general.*gathers"):
        run("for", [Shard(0), Shard(1)])


@pytest.mark.parametrize("kind", ["while", "if"])
def test_terms_of_sums_go_through_what_is_linear(kind):
    """Split columns become terms of the product's sum, and so do carried values, or what the other branch gives."""
    assert run(kind, [Shard(1), Replicate()]) == (Partial(), ())


def test_what_loops_add_up_stays_terms_of_a_sum():
    """As gradients of weights do: they are summed once, behind the loop."""
    assert run("sums", [Shard(0), Replicate()]) == (Partial(), ())

"""Derivatives of collectives: the transpose over all ranks, checked by running ranks as threads."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.transform import jvp_program, vjp_program
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType

SIZE = 2
F = TensorType((2, 4), "float64")
CASES = [("all_reduce", {"size": SIZE, "kind": kind}) for kind in ("sum", "avg", "max", "min", "prod")] + [
    ("all_gather", {"size": SIZE, "axis": 1}),
    ("reduce_scatter", {"size": SIZE, "axis": 1, "kind": "sum"}),
    ("reduce_scatter", {"size": SIZE, "axis": 0, "kind": "avg"}),
    ("all_gather_coalesced", {"size": SIZE}),
    ("reduce_scatter_coalesced", {"size": SIZE, "kind": "avg"}),
    ("all_to_all", {"size": SIZE, "split_axis": 1, "concat_axis": 0}),
    ("broadcast_rank", {"size": SIZE, "root": 1}),
    ("start", {"collective": "all_reduce", "size": SIZE, "kind": "sum"}),
    ("start", {"collective": "all_gather", "size": SIZE, "axis": 1}),
    ("start", {"collective": "reduce_scatter", "size": SIZE, "axis": 1, "kind": "avg"}),
    ("start", {"collective": "all_to_all", "size": SIZE, "axis": 1, "concat_axis": 0}),
    ("start", {"collective": "broadcast_rank", "size": SIZE, "root": 1}),
    ("start", {"collective": "permute", "pairs": ((0, 1), (1, 0))}),
    ("permute", {"pairs": ((0, 1), (1, 0))}),
    ("permute", {"pairs": ((0, 0), (0, 1))}),
]


def program_of(name, attributes):
    """x -> collective(x * x), times that of x where it takes several; a second one comes after it on the same chain."""
    program = Program(name)
    x = program.add_input(F)
    with emit_at(Builder.at_end(program.block)):
        token = prim.create_token()
        tensors = (x * x, x) if name.endswith("_coalesced") else (x * x,)
        y, *rest, token = getattr(prim, name)(*tensors, token, **attributes)
        if name == "start":
            y, token = prim.wait(y, *rest, token)
        elif rest:
            y = y * rest[0]
        z, token = prim.all_reduce(y * y, token, size=SIZE, kind="sum")
        outputs = [y * 2, z]
    program.set_outputs(outputs)
    return program


@pytest.mark.parametrize(("name", "attributes"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_collectives_differentiate(name, attributes):
    """Summed over ranks, forward mode equals the difference quotient and reverse mode is its transpose."""
    program = program_of(name, attributes)
    forward, backward = jvp_program(program), vjp_program(program)
    backward.verify()
    rng = np.random.default_rng(0)
    xs, vs = rng.standard_normal((2, SIZE, 2, 4))
    gs = [[rng.standard_normal(v.shape) for v in program.outputs] for _ in range(SIZE)]

    def rank(comm):
        r, on = comm.rank, [comm]
        ahead, behind = (interpret(program, [xs[r] + h * vs[r]], (), on)[0] for h in (1e-6, -1e-6))
        tangents = interpret(forward, [xs[r], vs[r]], (), on)[0][2:]
        (pulled,) = interpret(backward, [xs[r], *gs[r]], (), on)[0][2:]
        for t, a, b in zip(tangents, ahead, behind, strict=True):
            np.testing.assert_allclose(t, (a - b) / 2e-6, rtol=1e-5, atol=1e-5)
        return sum(np.sum(g * t) for g, t in zip(gs[r], tangents, strict=True)), np.sum(pulled * vs[r])

    results = run_ranks(rank, SIZE)
    np.testing.assert_allclose(sum(a for a, _ in results), sum(b for _, b in results), rtol=1e-9)


def test_communication_of_gradients_continues_the_chain_of_tokens():
    """Every token is consumed once: the order of all collectives is fixed."""
    backward = vjp_program(program_of("all_reduce", {"size": SIZE, "kind": "sum"}))
    for op in backward.block:
        for result in op.results:
            if not hasattr(result.type, "shape"):
                assert len(result.uses) <= 1

"""Results take the memory of an operand that nobody reads any more, where they read nothing of it but what they write
over."""

import numpy as np
import pytest
from programs import build, check, unguarded_report, values

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan import buffer_reuse
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_tensorcore.storage import StridedArray

N = 64
RNG = np.random.default_rng(0)
X, W = (values(RNG, (N, N), "float32", -1, 1) for _ in "xw")
SQUARE = 4 * N * N


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(buffer_reuse, "LARGE", 0)


def product(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))


def softmax(x):
    """Three loops over each row, of which the last one stores."""
    e = prim.exp(prim.sub(x, prim.broadcast(prim.reduce_max(x, axes=(1,)), shape=x.shape, axes=(0,))))
    return prim.div(e, prim.broadcast(prim.reduce_sum(e, axes=(1,)), shape=x.shape, axes=(0,)))


def squares(function, *arguments):
    """Squares that intermediate values need; the program is right on 1, 2 and 4 threads (`check` runs it)."""
    check(function, *arguments, scale=50)
    plan, _ = assemble_program(
        lower_program(to_primitives(build(function, arguments)), Target.host()), Target.host(), Budget()
    )
    return sum(life.nbytes == SQUARE for life in plan.lifetimes), plan


def test_rows_are_written_over_what_they_were_read_from():
    """Both products' results are gone where the softmax of the first, and of the second, is written."""

    def chain(x, w):
        return product(softmax(product(softmax(product(x, w)), w)), w)

    count, plan = squares(chain, X, W)
    assert count == 2
    assert plan.arena_bytes < 2 * SQUARE + 4096 + 4 * N * 8


def test_what_is_read_later_or_elsewhere_is_kept():
    def read_later(x, w):
        h = product(x, w)
        return product(product(softmax(h), w), h)

    def turned(x, w):
        h = product(x, w)
        row = prim.broadcast(prim.reduce_sum(prim.transpose(h, permutation=(1, 0)), axes=(1,)), shape=(N, N), axes=(0,))
        return product(prim.add(h, prim.add(prim.transpose(h, permutation=(1, 0)), row)), w)

    assert squares(read_later, X, W)[0] == 3
    assert squares(turned, X, W)[0] == 2


def test_columns_are_summed_before_they_are_written_over():
    def sums(x, w):
        h = product(x, w)
        y = prim.tanh(prim.mul(h, 2.0))
        return prim.reduce_sum(prim.mul(h, x), axes=(0,)), product(softmax(h), w), product(y, w)

    squares(sums, X, W)


def test_two_results_do_not_share_one_operand():
    def both(x, w):
        h = product(x, w)
        return product(softmax(h), w), product(softmax(prim.neg(h)), w)

    squares(both, X, W)


@pytest.mark.usefixtures("unguarded")
def test_it_can_be_switched_off(monkeypatch):
    program = build(lambda x, w: product(softmax(product(x, w)), w), [X, W])
    found = {}
    for without in ((), ("in-place",)):
        executable = CinnCompiler().compile(program, device("cpu"), options={"without": list(without)})
        (got,) = executable.run([StridedArray.from_array(a.copy()) for a in (X, W)])
        found[without] = unguarded_report(executable)["arena_bytes"], got.array().tobytes()
    assert found[()][0] < found["in-place",][0]
    assert found[()][1] == found["in-place",][1]


@pytest.mark.usefixtures("unguarded")
def test_nothing_is_made_again_where_overwriting_meets_the_budget():
    program = build(lambda x, w: product(softmax(product(x, w)), w), [X, W])
    options = {"memory_budget": SQUARE + 4096 + 2 * N * 8}
    executable = CinnCompiler().compile(program, device("cpu"), options=options)
    assert unguarded_report(executable)["arena_bytes"] <= options["memory_budget"]
    assert "recomputed" not in executable.report()

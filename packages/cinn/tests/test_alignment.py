"""Products over several axes in any order are native and right, and copy no more than they must."""

import numpy as np
import pytest
from programs import check, unguarded_report

from argosy_phi_ops import prim

RNG = np.random.default_rng(0)
SIZES = {"i": 3, "j": 4, "k": 5, "m": 6, "n": 7, "b": 2, "u": 1}


def tensor(axes):
    return RNG.standard_normal([SIZES[a] for a in axes]).astype(np.float32)


def product(left, right, contracted, batch=""):
    """The product of two tensors whose axes have names, over axes in a given order."""

    def axes(of, names):
        return tuple(of.index(name) for name in names)

    def program(x, y):
        return prim.dot_general(
            x, y, lhs_contract=axes(left, contracted), rhs_contract=axes(right, contracted),
            lhs_batch=axes(left, batch), rhs_batch=axes(right, batch),
        )  # fmt: skip

    return program


@pytest.mark.parametrize("fuel", [None, 0])
@pytest.mark.parametrize(
    ("left", "right", "contracted", "batch"),
    [
        ("ijk", "kji", "jki", ""), ("ijk", "ikj", "kji", ""), ("mijk", "kjin", "jki", ""), ("imjk", "kinj", "kij", ""),
        ("bimj", "jbin", "ji", "b"), ("imbj", "njbi", "ij", "b"), ("iuj", "juni", "iju", ""),
        ("ibmj", "nijb", "jb", ""),
    ],
)  # fmt: skip
def test_axes_are_contracted_in_any_order(left, right, contracted, batch, fuel):
    """No order of the contracted axes needs the interpreter, not even without any optimisation."""
    options = None if fuel is None else {"fuel": fuel}
    report = check(product(left, right, contracted, batch), tensor(left), tensor(right), scale=10, options=options)
    assert not report.report().get("fallback")
    assert not report.report()["host_calls"]


@pytest.mark.parametrize("contracted", ["ij", "ji"])
def test_pairs_in_another_order_than_memory_cost_nothing(contracted):
    report = unguarded_report(check(product("mij", "ijn", contracted), tensor("mij"), tensor("ijn"), scale=10))
    assert report["arena_bytes"] == 0


def test_the_smaller_operand_is_copied():
    x, y = tensor("nmij"), tensor("jim")
    report = unguarded_report(check(product("nmij", "jim", "ij"), x, y, scale=10))
    assert 0 < report["arena_bytes"] < x.nbytes


def test_a_transpose_beneath_an_operand_is_undone_for_nothing():
    def program(x, y):
        return product("nji", "ijm", "ij")(x, prim.transpose(y, permutation=(1, 0, 2)))

    executable = check(program, tensor("nji"), tensor("jim"), scale=10)
    assert unguarded_report(executable)["arena_bytes"] == 0

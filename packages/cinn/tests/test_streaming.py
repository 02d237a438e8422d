"""Results go past the caches where they would have left them before anybody reads them, and nowhere else."""

import numpy as np
import pytest
from programs import build, check

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives

MIB = 1 << 20
N = 512  # a square of it in float32 is one MiB
X, W = (0.1 * np.random.default_rng(i).standard_normal((N, N), np.float32) for i in (0, 1))


def product(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))


def far_and_near(x, w):
    """``early`` is written with ``h``, which the second product reads; nobody but the third reads ``early``."""
    early = product(x, w)
    h = prim.tanh(early)
    return prim.mul(product(product(h, w), w), early)


def shrink(monkeypatch, nbytes):
    """A last-level cache of so many bytes."""
    monkeypatch.setattr(Target.host(), "l3_bytes", nbytes)


def marked(function, *arguments):
    """For each stored value, in order, whether it goes past the caches."""
    program = lower_program(to_primitives(build(function, arguments)), Target.host())
    plan, assembly = assemble_program(program, Target.host(), Budget())
    stores = [s.streaming for step in plan.steps for form in step.forms for s in form.stores]
    assert ("!nontemporal" in assembly.module.text()) == any(stores)
    return stores


@pytest.mark.skipif(Target.host().vector_bits != 512, reason="vectors of a tile are no whole cache lines")
def test_what_is_read_late_is_streamed(monkeypatch):
    """x, w, early and h; h, w and the second product; that, w, early and the result: 4, 3 and 4 MiB."""
    for cache, want in ((4, [True, True, False, True]), (6, [True, False, False, False]), (8, [False] * 4)):
        shrink(monkeypatch, cache * MIB)
        assert sorted(marked(far_and_near, X, W)) == sorted(want), cache


def test_results_of_much_traffic_are_streamed(monkeypatch):
    def sum_of_exponentials(x, y):
        return prim.add(prim.exp(x), prim.exp(y))

    shrink(monkeypatch, 3 * MIB)
    assert marked(sum_of_exponentials, X, W) == [True]
    check(sum_of_exponentials, X, W)
    shrink(monkeypatch, 4 * MIB)
    assert marked(sum_of_exponentials, X, W) == [False]


def test_small_and_crooked_results_are_not(monkeypatch):
    """Small results may begin anywhere, and a last vector need not be whole."""
    shrink(monkeypatch, 0)
    assert marked(prim.exp, X[:256]) == [False]
    assert marked(prim.exp, np.ones((1031, 299), np.float32)) == [False]


def test_streamed_products_are_right(monkeypatch):
    shrink(monkeypatch, 0)
    check(far_and_near, X, W, scale=10)
    check(lambda x, w: prim.tanh(product(x, w)), X.astype(np.float64), W.astype(np.float64))

"""What lies between gaps, or is repeated along a row, is read by loads and permutations, and nothing beyond it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check, values

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives


def spread(x, low, high, gaps):
    """``x`` with gaps along its last axis, twice: one a place further than the other, as windows overlap."""
    none = (0,) * (x.ndim - 1)
    zero = prim.constant(0, x.dtype)
    around = ((low, high + 1), (low + 1, high))
    parts = [prim.pad(x, zero, low=(*none, a), high=(*none, b), interior=(*none, gaps)) for a, b in around]
    return prim.add(*parts)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 70), st.integers(-3, 20), st.integers(-3, 20), st.integers(1, 40),
       st.sampled_from(["float32", "int32", "float64", "bfloat16"]))  # fmt: skip
def test_any_gaps_and_edges(rows, size, low, high, gaps, dtype):
    """Operands end where no memory follows, or begin where none comes before."""
    whole = (size - 1) * (gaps + 1) + 1
    low, high = max(low, -whole // 2 + 1), max(high, -whole // 2 + 1)
    x = values(np.random.default_rng(size), (rows, size), dtype)
    check(lambda x: spread(x, low, high, gaps), x)


@pytest.mark.parametrize("stride", [2, 3])
def test_gradients_of_windows_that_overlap(stride):
    """Maxima of windows of three: a place belongs to up to two of them along an axis."""
    size = 40
    count = (size - 3) // stride + 1
    end = (count - 1) * stride + 1

    def gradient(x, g):
        total = None
        parts = [prim.slice(x, start=(0, i), limit=(5, end + i), stride=(1, stride)) for i in range(3)]
        best = prim.maximum(prim.maximum(*parts[:2]), parts[2])
        for i, part in enumerate(parts):
            chosen = prim.select(prim.eq(part, best), g, prim.mul(g, 0.0))
            zero = prim.constant(0, "float32")
            back = prim.pad(chosen, zero, low=(0, i), high=(0, size - end - i), interior=(0, stride - 1))
            total = back if total is None else prim.add(total, back)
        return total

    rng = np.random.default_rng(0)
    check(gradient, rng.standard_normal((5, size), np.float32), rng.standard_normal((5, count), np.float32))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_there_is_no_gather(dtype):
    target = Target.host()
    if target.vector_bits != 512:
        pytest.skip("permutes vectors of 512 bits")
    program = build(lambda x: spread(x, 1, 1, 1), [np.zeros((3, 75), dtype)])
    _, assembly = assemble_program(lower_program(to_primitives(program), target), target, Budget())
    made = assembly.module.text()
    assert "masked.gather" not in made
    assert "permvar" in made

"""Rows with infinities, NaN and zeros of both signs, in every reduction: what numpy makes of them, on every device."""

import numpy as np
import pytest
from test_simt import program_of

from argosy_cinn.compiler import CinnCompiler
from argosy_hwadapt import device, why
from argosy_phi_ops.eager.placement import send
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

DEVICES = ["cpu", "virtual", pytest.param("opencl", marks=pytest.mark.skipif(why("opencl") is not None, reason="none"))]
#: Numbers of which no product overflows or vanishes in one order of multiplication, and not in another.
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], np.float32)


def rows_of(length):
    """Rows of many special numbers, of few, of an infinity and a zero wherever they stand, and of one alone."""
    rng = np.random.default_rng(length)
    few = np.where(rng.random((30, length)) < 1.5 / length, rng.choice(SPECIAL, (30, length)), np.float32(1))
    pairs = np.ones((min(length, 20), length), np.float32)
    for i, row in enumerate(pairs):
        row[rng.permutation(length)[:2]] = (np.inf, 0.0) if i % 2 else (0.0, -np.inf)
    return np.concatenate([rng.choice(SPECIAL, (20, length)), few, pairs, SPECIAL[:, None].repeat(length, 1)])


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "logsumexp", "var"])
def test_rows_are_reduced_as_by_numpy(name, place):
    """An infinity times zero is NaN in any order; lengths that fill vectors, and that do not."""
    there = device(place)
    for length in (2, 16, 37):
        x = rows_of(length)
        program = program_of(name, x, axis=[1])
        with np.errstate(all="ignore"):
            (wanted,), _ = interpret(program, [x])
        (made,) = CinnCompiler().compile(program, there).run([send(StridedArray.from_array(x), there)])
        np.testing.assert_allclose(made.to_host(), wanted, rtol=1e-5, atol=1e-6)
        undefined = ~np.isfinite(wanted)
        np.testing.assert_array_equal(made.to_host()[undefined], wanted[undefined])

"""Vector functions on every magnitude, on vectors of several processors: bounds, infinities, NaN, denormal numbers."""

import ctypes

import numpy as np
import pytest

from argosy_cinn import functions
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import FLOAT, vector
from argosy_cinn.runtime import load
from argosy_cinn.target import Target
from argosy_phi_ops.reference.kernels import KERNELS

TARGETS = ["host", "x86-64-v3", "x86-64-v2", "x86-64"]


def applied(name, cpu, x):
    """A function of `math` on an array whose size the lanes divide, by code for a processor."""
    if cpu != "host" and not Target.host().is_x86:
        pytest.skip("an x86 level")
    module = Module(Target.host() if cpu == "host" else Target.from_name(cpu))
    lanes = module.target.lanes(FLOAT)
    type = vector(FLOAT, lanes)
    with module.function("f", [("ptr", "x"), ("ptr", "y"), ("i64", "n")]) as b:
        source, target, n = b.arguments
        with b.loop(0, n, lanes) as loop:
            value = functions.apply(b, name, b.load(type, b.gep(source, loop.index)))
            b.store(value, b.gep(target, loop.index))
    library = load(module.text(), module.exports, module.target)
    y = np.empty_like(x)
    assert x.size % lanes == 0
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.address("f"))
    function(x.ctypes.data, y.ctypes.data, x.size)
    return y


def every_magnitude(positive=False):
    """Floats of all exponents, denormal and infinite ones included, about evenly in their bits."""
    last = 0x7F800000
    x = np.append(np.arange(0, last, 20_011), [1, 2, 0x7FFFFF, 0x800000, last]).astype(np.uint32)
    x = np.concatenate([x, x if positive else x | 1 << 31]).view(np.float32)
    return np.resize(x, -(-x.size // 16) * 16)


EXACT = {
    "exp": np.exp, "logistic": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "log": np.log,
    "erf": KERNELS["erf"], "erfc": KERNELS["erfc"],
}  # fmt: skip
#: What the docstrings state.
BOUNDS = {"exp": 1.2, "logistic": 2.5, "tanh": 5.0, "log": 0.9, "erf": 6.0, "erfc": 6.0}
#: The same on processors without fused multiply-adds, where that differs.
UNFUSED = {"tanh": 6.0, "erfc": 7.5}
LEAST = {"log": 0.0}


def bound(name, cpu):
    return BOUNDS[name] if cpu in ("host", "x86-64-v3") else UNFUSED.get(name, BOUNDS[name])


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("name", EXACT)
def test_bounds_hold_for_every_magnitude(name, cpu):
    x = every_magnitude()
    x = np.resize(x[x >= LEAST.get(name, -np.inf)], x.size)
    with np.errstate(all="ignore"):
        want = EXACT[name](x.astype(np.float64))
        nearest = want.astype(np.float32)
    got = applied(name, cpu, x)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(got[~finite], nearest[~finite])
    error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(nearest[finite]))
    assert error.max() <= bound(name, cpu)


@pytest.mark.parametrize("cpu", TARGETS)
def test_tanh_is_never_above_one(cpu):
    """What is computed from it, its derivative 1 - y^2 or a square root of that, relies on it; small numbers, which
    denormal ones are, stay themselves."""
    bits = np.arange(np.float32(1e-4).view(np.uint32), np.float32(100).view(np.uint32), 59, dtype=np.uint32)
    x = np.resize(bits.view(np.float32), -(-bits.size // 16) * 16)
    got, want = applied("tanh", cpu, x), np.tanh(x.astype(np.float64))
    assert got.max() == 1
    assert (np.abs(got - want) / np.spacing(want.astype(np.float32))).max() <= bound("tanh", cpu)
    np.testing.assert_array_equal(applied("tanh", cpu, -x), -got)
    small = every_magnitude()
    small = np.resize(small[np.abs(small) < 1e-4], 4096)
    np.testing.assert_array_equal(applied("tanh", cpu, small), small)


@pytest.mark.parametrize("cpu", TARGETS)
def test_erfc_is_as_exact_in_its_tail(cpu):
    """Gelu takes its negative tail from it, down to the least denormal number, which one step may be lost of."""
    bits = np.arange(np.float32(1e-3).view(np.uint32), np.float32(10.3).view(np.uint32), 331, dtype=np.uint32)
    x = np.resize(np.concatenate([bits, bits | 1 << 31]).view(np.float32), -(-bits.size // 8) * 16)
    got, want = applied("erfc", cpu, x), KERNELS["erfc"](x.astype(np.float64))
    steps = np.spacing(np.abs(want.astype(np.float32)))
    assert (np.abs(got - want) / steps).max() <= bound("erfc", cpu)
    assert applied("erfc", cpu, np.zeros(16, np.float32)).tolist() == [1.0] * 16


@pytest.mark.parametrize("cpu", TARGETS)
def test_saturated_results_are_exact(cpu):
    x = np.resize(np.array([8.14, 9, 20, 100, 3e38, np.inf], np.float32), 96)
    for name in ("tanh", "erf"):
        np.testing.assert_array_equal(applied(name, cpu, x), 1)
        np.testing.assert_array_equal(applied(name, cpu, -x), -1)
    x = np.resize(x[x > 15], 96)
    np.testing.assert_array_equal(applied("erfc", cpu, x), 0)
    np.testing.assert_array_equal(applied("erfc", cpu, -x), 2)


@pytest.mark.parametrize("cpu", TARGETS)
def test_denormal_results_lose_one_step_at_most(cpu):
    x = np.linspace(-103.9, -87.4, 4096, dtype=np.float32)
    want = np.exp(x.astype(np.float64))
    for name in ("exp", "logistic"):
        steps = np.abs(applied(name, cpu, x) - want) / 2.0**-149
        assert (steps <= 1 + want / 2.0**-149 * 2e-7).all(), name


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("name", EXACT)
def test_nan_stays_nan_beside_other_numbers(name, cpu):
    x = np.resize(np.array([1.0, np.nan, 0.5, -np.nan, 3.0], np.float32), 80)
    assert (np.isnan(applied(name, cpu, x)) == np.isnan(x)).all()


@pytest.mark.parametrize("cpu", TARGETS)
def test_logarithms_of_what_has_none(cpu):
    x = np.resize(np.array([-1.0, -np.inf, -1e-42, 0.0, -0.0], np.float32), 80)
    got = applied("log", cpu, x)
    assert np.isnan(got[x < 0]).all()
    assert (got[x == 0] == -np.inf).all()

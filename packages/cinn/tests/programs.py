"""Building programs for tests, and comparing the compiled ones with the reference interpreter."""

import ml_dtypes
import numpy as np
from guarded import SIDES, guarded

from argosy_cinn import CinnCompiler
from argosy_cinn.plan.memory import Lifetime, assign_offsets
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

DTYPES = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}
#: Rounding steps of the result's dtype that a compiled program may be away from the reference.
TOLERANCE = {
    "complex64": 2e-5,
    "complex128": 1e-12,
    "float32": 2e-5,
    "float64": 1e-12,
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}


def build(function, arguments, states=()):
    """The program of ``function(*inputs, *states)``; with states it returns (outputs, new states)."""
    program = Program("test")
    inputs = [program.add_input(TensorType(a.shape, a.dtype.name)) for a in arguments]
    held = [program.add_state(f"s{i}", TensorType(a.shape, a.dtype.name)).argument for i, a in enumerate(states)]
    with emit_at(Builder.at_end(program.block)):
        results = function(*inputs, *held)
    outputs, updates = results if states else (results, None)
    program.set_outputs(list(outputs) if isinstance(outputs, (tuple, list)) else [outputs], updates)
    return program


def assert_equal(got, want, scale=1.0, label=""):
    """Equal shape and dtype, and values up to rounding."""
    assert got.shape == want.shape, label
    assert got.dtype == want.dtype, label
    tolerance = TOLERANCE.get(got.dtype.name)
    if tolerance is None:
        np.testing.assert_array_equal(got, want, err_msg=label)
        return
    wide = np.float64 if got.dtype.kind != "c" else np.complex128
    bound = tolerance * scale
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=bound, atol=bound, err_msg=label)


def unguarded_report(executable):
    """An executable's report, with ``arena_bytes`` as they are without the pages that guard mode puts around values."""
    manifest = executable.manifest
    lifetimes = [Lifetime(i, int(nbytes), first, last) for i, (nbytes, first, last) in enumerate(manifest.lifetimes)]
    return executable.report() | ({"arena_bytes": assign_offsets(lifetimes)[1]} if manifest.guard else {})


def check(function, *arguments, scale=1.0, options=None, states=()):
    """Compile, run and compare with the interpreter; returns the executable. Operands have nothing before them in one
    run, and nothing behind them in the next."""
    program = build(function, arguments, states)
    want, updates = interpret(program, arguments, [s.copy() for s in states])
    executable = CinnCompiler().compile(program, device("cpu"), options=options)
    for side in SIDES:
        held = [StridedArray.from_array(guarded(s.copy(), side)) for s in states]
        got = executable.run([StridedArray.from_array(guarded(a, side)) for a in arguments], held)
        assert len(got) == len(want)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_equal(g.array(), w, scale, f"output {i}: {program.outputs[i]}")
        for i, (g, w) in enumerate(zip(held, updates, strict=True)):
            assert_equal(g.array(), w, scale, f"state {i}")
    return executable


#: What `on_host` leaves to the host.
ON_HOST = "prim.triangular_solve"


def on_host(x, axis):
    """``x``, as the solution of a system of equations whose matrix is the unit matrix."""
    n, order = x.shape[axis], [axis, *(i for i in range(len(x.shape)) if i != axis)]
    turned = prim.transpose(x, permutation=tuple(order))
    rows, columns = (prim.iota(shape=(n, n), dtype="int32", axis=i) for i in (0, 1))
    unit = prim.cast(prim.eq(rows, columns), dtype=x.dtype)
    solved = prim.triangular_solve(unit, prim.reshape(turned, shape=(n, int(np.prod(turned.shape[1:])))))
    return prim.transpose(prim.reshape(solved, shape=turned.shape), permutation=tuple(np.argsort(order).tolist()))


def values(rng, shape, dtype, low=-3.0, high=3.0):
    """Random values of a dtype."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)
    return (rng.random(shape) * (high - low) + low).astype(DTYPES.get(dtype, dtype))

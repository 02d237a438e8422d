"""Every primitive of every dtype has native code, those aside that libraries compute or other processes answer."""

import numpy as np
import pytest
from programs import build, check, values

from argosy_cinn.lowering.classify import HOST, classify
from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.errors import DTypeError, OperatorError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.checks import BOOL, COMPLEX, FLOATING, INTEGER

DTYPES = sorted(BOOL | INTEGER | FLOATING | COMPLEX)
#: Families that stay with their libraries (Fourier transforms, decompositions, callbacks) or need other processes.
ELSEWHERE = {"transform", "decomposition", "host", "communication"}
#: What the README lists as missing.
MISSING = {(f"scatter_{kind}", dtype) for kind in ("mul", "max", "min") for dtype in COMPLEX}
CUT = {"start": (1, 0), "limit": (3, 2), "stride": (1, 1)}
CONVOLUTION = {"strides": (1,), "padding": ((1, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,)}


def at(i, kind):
    return lambda x, y: prim.scatter(x, i(), y, axes=(0,), kind=kind)


def reduction(kind):
    return lambda x, y: getattr(prim, f"reduce_{kind}")(x, axes=(1,))


def running(kind):
    return lambda x, y: prim.cumulative(x, axis=1, kind=kind)


def cast(dtype):
    return lambda x, y: prim.cast(x, dtype=dtype)


def places():
    return prim.constant(1, "int64", (4, 1))


def zeros():
    return [prim.constant(0, "int64") for _ in range(2)]


SPECIAL = {
    "dot_general": lambda x, y: prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(1,)),
    "conv": lambda x, y: prim.conv(*(prim.reshape(v, shape=(2, 2, 3)) for v in (x, y)), **CONVOLUTION),
    "select": lambda x, y: prim.select(prim.constant(True, "bool", x.shape), x, y),
    "complex": lambda x, y: prim.complex(x, y),
    "bitcast": lambda x, y: prim.bitcast(x, dtype=x.dtype),
    "gather": lambda x, y: prim.gather(x, places(), axes=(0,)),
    **{f"scatter_{kind}": at(places, kind) for kind in ("set", "add", "mul", "max", "min")},
    "dynamic_slice": lambda x, y: prim.dynamic_slice(x, *zeros(), sizes=(2, 2)),
    "dynamic_update_slice": lambda x, y: prim.dynamic_update_slice(x, prim.slice(y, **CUT), *zeros()),
    "sort": lambda x, y: prim.sort(x, y, axis=1, keys=1),
    "broadcast": lambda x, y: prim.broadcast(x, shape=(4, 3, 2), axes=(0, 1)),
    "reshape": lambda x, y: prim.reshape(x, shape=(12,)),
    "transpose": lambda x, y: prim.transpose(x, permutation=(1, 0)),
    "slice": lambda x, y: prim.slice(x, **CUT),
    "pad": lambda x, y: prim.pad(x, prim.constant(0, x.dtype), low=(1, 0), high=(0, 1), interior=(1, 0)),
    "concat": lambda x, y: prim.concat(x, y, axis=0),
    "reverse": lambda x, y: prim.reverse(x, axes=(1,)),
    "iota": lambda x, y: prim.iota(shape=x.shape, axis=1, dtype=x.dtype),
    "dim_size": lambda x, y: prim.dim_size(dim=4, dtype=x.dtype),
    **{f"reduce_{kind}": reduction(kind) for kind in ("sum", "prod", "max", "min", "and", "or")},
    "argmax": lambda x, y: prim.argmax(x, axis=1), "argmin": lambda x, y: prim.argmin(x, axis=0),
    **{f"cumulative_{kind}": running(kind) for kind in ("sum", "prod", "max", "min", "logsumexp")},
    **{f"cast_{dtype}": cast(dtype) for dtype in DTYPES},
}  # fmt: skip
COVERED = {name.split("_")[0] if name.startswith(("scatter", "cumulative", "cast")) else name for name in SPECIAL}


def plain(name):
    """A call of an elementwise primitive with one operand or two."""
    primitive = PRIMITIVES[name]

    def call(x, y):
        try:
            return primitive(x, y)
        except DTypeError:
            raise
        except OperatorError:  # one operand
            return primitive(x)

    return call


CALLS = SPECIAL | {n: plain(n) for n, p in PRIMITIVES.items() if p.category == "elementwise" and n not in COVERED}


def program_of(name, dtype):
    """A program that does one thing; None where the primitive does not take the dtype."""
    try:
        return build(CALLS[name], [np.empty((4, 3), values(np.random.default_rng(0), (1,), dtype).dtype)] * 2)
    except DTypeError:
        return None


def host_calls(program):
    return [
        op.name
        for op in lower_program(program, Target.host()).block
        if op is not None and op.results and classify(op) == HOST
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_primitive_is_left_to_the_host(dtype):
    found = {name for name in CALLS if (made := program_of(name, dtype)) is not None and host_calls(made)}
    impossible = {"cumulative_logsumexp"} if dtype in INTEGER else set()  # numpy has none of integers either
    assert {(name, dtype) for name in found - impossible} == {m for m in MISSING if m[1] == dtype}


def test_the_test_knows_every_primitive():
    marks = {"relayout", "to_local", "from_local", "place"}  # read by the partitioner, and by what cuts by devices
    marks |= {"check_index", "paged_attention", "grouped_dot", "grouped_outer"}  # see the tests of each
    other = {n for n, p in PRIMITIVES.items() if p.category in ELSEWHERE} | marks | {"rng_bits", "sort"}
    assert COVERED | other | {n for n in CALLS if n in PRIMITIVES} >= PRIMITIVES.keys()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_exponentials(dtype, reverse):
    x = values(np.random.default_rng(3), (3, 19, 5), dtype)
    x[0, 2], x[1, 3, 2] = -np.inf if dtype != "float8_e4m3fn" else 0, 2
    for axis in range(3):
        report = check(lambda x, a=axis: prim.cumulative(x, axis=a, kind="logsumexp", reverse=reverse), x).report()
        assert report["host_calls"] == {}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2", "bool", "int8", "complex64"])
def test_scatters_products_and_convolutions_of_narrow_dtypes(dtype):
    rng = np.random.default_rng(5)
    i = rng.integers(-1, 6, (20, 1))
    x, u = values(rng, (6, 3), dtype), values(rng, (20, 3), dtype)
    if dtype != "complex64":
        kinds = ("set", "add", "mul", "max", "min")
        check(lambda x, i, u: [prim.scatter(x, i, u, axes=(0,), kind=k) for k in kinds], x, i, u)
    if dtype != "bool":
        a, w = values(rng, (2, 4, 9), dtype, -1, 1), values(rng, (2, 4, 3), dtype, -1, 1)
        check(lambda a, w: prim.conv(a, w, **CONVOLUTION), a, w, scale=4)
        check(lambda x, u: prim.dot_general(x, u, lhs_contract=(1,), rhs_contract=(1,)), x, u, scale=4)

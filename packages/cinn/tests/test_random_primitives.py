"""Random programs that every primitive is part of: those that a rounding error may decide otherwise (floor, bits,
comparisons) take values that are exact on both sides, the others stay where they are defined and errors do not grow."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import assert_equal, build, values
from test_random_types import strided

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

#: Primitives that no random program contains: of other processes, of the partitioner, of Python; checks, which raise
#: (`test_index_checks`); and decompositions whose results are not continuous, or which are the interpreter's own
#: kernels anyway.
ELSEWHERE = {
    *(name for name, p in PRIMITIVES.items() if p.category in ("communication", "host")),
    "relayout", "place", "to_local", "from_local", "check_index", "lu", "qr", "svd", "eig", "eigh",
    "paged_attention", "grouped_dot", "grouped_outer",
}  # fmt: skip


def number(x, value):
    return prim.constant(value, x.dtype, x.shape)


def small(x):
    """Between -1 and 1."""
    return prim.tanh(x)


def positive(x, least=0.5):
    return prim.add(prim.abs(small(x)), number(x, least))


#: Of numbers between -1 and 1, and others; the results are bounded, and so is by how much they grow errors.
SMOOTH = {
    "exp": lambda u, v: prim.exp(small(u)), "expm1": lambda u, v: prim.expm1(small(u)),
    "log": lambda u, v: prim.log(positive(u)), "log1p": lambda u, v: prim.log1p(prim.mul(small(u), 0.5)),
    "sqrt": lambda u, v: prim.sqrt(positive(u)), "rsqrt": lambda u, v: prim.rsqrt(positive(u)),
    "sin": lambda u, v: prim.sin(prim.mul(small(u), 9.0)), "cos": lambda u, v: prim.cos(prim.mul(small(u), 9.0)),
    "tan": lambda u, v: prim.tan(small(u)), "asin": lambda u, v: prim.asin(prim.mul(small(u), 0.9)),
    "acos": lambda u, v: prim.acos(prim.mul(small(u), 0.9)), "atan": lambda u, v: prim.atan(u),
    "sinh": lambda u, v: prim.sinh(small(u)), "cosh": lambda u, v: prim.cosh(small(u)),
    "asinh": lambda u, v: prim.asinh(u), "acosh": lambda u, v: prim.acosh(positive(u, 1.5)),
    "atanh": lambda u, v: prim.atanh(prim.mul(small(u), 0.9)), "logistic": lambda u, v: prim.logistic(u),
    "erf": lambda u, v: prim.erf(u), "erfc": lambda u, v: prim.erfc(small(u)),
    "erfinv": lambda u, v: prim.erfinv(prim.mul(small(u), 0.9)), "lgamma": lambda u, v: prim.lgamma(positive(u, 1.5)),
    "digamma": lambda u, v: prim.digamma(positive(u, 1.5)), "add": lambda u, v: small(prim.add(u, v)),
    "sub": lambda u, v: small(prim.sub(u, v)), "mul": lambda u, v: prim.mul(small(u), small(v)),
    "div": lambda u, v: prim.div(small(u), positive(v)), "pow": lambda u, v: prim.pow(positive(u), small(v)),
    "atan2": lambda u, v: prim.atan2(small(u), positive(v)), "stop": lambda u, v: prim.stop_gradient(u),
    "copy": lambda u, v: prim.copy(u),
}  # fmt: skip


def complex_product(u, v):
    """Parts of a product of complex numbers, and of a transform."""
    z = prim.mul(prim.complex(small(u), small(v)), prim.conj(prim.complex(small(v), small(u))))
    return prim.add(prim.real(z), prim.imag(z))


def spectrum(u, v):
    wave = prim.fft(prim.complex(small(u), small(v)), axes=(1,), kind="c2c")
    return prim.div(prim.imag(wave), number(u, float(u.shape[1])))


def gram(u, v):
    product = prim.dot_general(small(u), small(v), lhs_contract=(1,), rhs_contract=(1,))
    mixed = prim.dot_general(small(product), small(u), lhs_contract=(1,), rhs_contract=(0,))
    return prim.div(mixed, number(u, float(u.shape[0])))


def solved(u, v):
    """Systems of a matrix near the unit matrix, by both of its factors' ways."""
    n = u.shape[0]
    rows, columns = (prim.iota(shape=(n, n), axis=axis, dtype="int32") for axis in (0, 1))
    unit = prim.cast(prim.eq(rows, columns), dtype=u.dtype)
    gram = prim.dot_general(small(u), small(u), lhs_contract=(1,), rhs_contract=(1,))
    matrix = prim.add(unit, prim.div(gram, number(gram, 4.0 * n * u.shape[1])))
    return prim.solve(matrix, prim.triangular_solve(prim.cholesky(matrix), small(v)))


def blurred(u, v):
    image = prim.reshape(small(u), shape=(1, 1, *u.shape))
    window = prim.constant(0.2, u.dtype, (1, 1, 3, 1))
    ones = {name: (1, 1) for name in ("strides", "lhs_dilation", "rhs_dilation")}
    return prim.reshape(prim.conv(image, window, padding=((1, 1), (0, 0)), **ones), shape=u.shape)


def products(u, v):
    """Products along rows, and running ones along columns; sums of exponentials on their way."""
    whole = prim.broadcast(prim.reduce_prod(small(u), axes=(1,)), shape=u.shape, axes=(0,))
    running = prim.cumulative(small(v), axis=0, kind="prod")
    return prim.sub(prim.add(whole, running), small(prim.cumulative(small(u), axis=1, kind="logsumexp")))


def totals(u, v):
    rows = prim.div(prim.reduce_sum(small(u), axes=(1,)), prim.constant(float(u.shape[1]), u.dtype, (u.shape[0],)))
    columns = prim.sub(prim.reduce_max(v, axes=(0,)), prim.reduce_min(v, axes=(0,)))
    return prim.mul(
        prim.broadcast(rows, shape=u.shape, axes=(0,)), small(prim.broadcast(columns, shape=u.shape, axes=(1,)))
    )


SMOOTH |= {f.__name__: f for f in (complex_product, spectrum, gram, solved, blurred, products, totals)}


def views(a, b):
    """Elements moved: exact values stay exact."""
    rows, columns = a.shape
    flat = prim.reverse(prim.reshape(prim.transpose(a, permutation=(1, 0)), shape=a.shape), axes=(1,))
    wide = prim.pad(flat, prim.constant(0.5, a.dtype), low=(1, 0), high=(0, 2), interior=(1, 0))
    first = prim.slice(wide, start=(0, 0), limit=(rows, columns), stride=(1, 1))
    return prim.slice(
        prim.concat(first, b, axis=0), start=(rows // 2, 0), limit=(rows // 2 + rows, columns), stride=(1, 1)
    )


def whole(x):
    """Whole numbers of exact values, not large."""
    return prim.cast(prim.rem(prim.trunc(x), number(x, 100.0)), dtype="int32")


def of_whole(a, b):
    """Arithmetic of whole numbers and of their bits, back among those below a hundred."""
    x, y = whole(a), whole(b)
    above = prim.add(prim.abs(y), prim.constant(1, "int32", y.shape))
    count = prim.rem(above, prim.constant(5, "int32", y.shape))
    parts = [
        prim.floor_div(x, above), prim.floor_mod(x, above), prim.bitwise_and(x, y), prim.bitwise_or(x, y),
        prim.bitwise_xor(x, prim.bitwise_not(y)), prim.shift_right(x, count), prim.shift_left(x, count),
    ]  # fmt: skip
    total = parts[0]
    for part in parts[1:]:
        total = prim.add(total, part)
    return prim.cast(prim.rem(total, prim.constant(100, "int32", x.shape)), dtype=a.dtype)


def compared(a, b):
    tests = [prim.ne(a, b), prim.lt(a, b), prim.le(a, b), prim.gt(a, b), prim.ge(a, b), prim.is_finite(a)]
    found = prim.logical_xor(prim.logical_or(prim.is_nan(a), prim.is_inf(b)), prim.logical_not(prim.eq(a, b)))
    for test in tests:
        found = prim.logical_and(prim.logical_or(found, test), prim.logical_not(prim.logical_xor(found, test)))
    anywhere = prim.broadcast(prim.reduce_or(found, axes=(1,)), shape=a.shape, axes=(0,))
    everywhere = prim.broadcast(prim.reduce_and(found, axes=(0,)), shape=a.shape, axes=(1,))
    return prim.select(prim.logical_and(found, anywhere), a, prim.select(everywhere, prim.neg(b), b))


def places(a, b):
    """Positions of extremes, and what is found there or put there."""
    rows, columns = a.shape
    best = prim.reshape(prim.rem(prim.argmax(a, axis=1), prim.constant(rows, "int64", (rows,))), shape=(rows, 1))
    found = prim.gather(b, best, axes=(0,))
    written = prim.scatter(a, best, found, axes=(0,), kind="max")
    start = prim.argmin(prim.slice(b, start=(0, 0), limit=(1, columns), stride=(1, 1)), axis=1)
    start = prim.reshape(start, shape=())
    row = prim.dynamic_slice(written, start, prim.constant(0, "int64"), sizes=(1, columns))
    return prim.dynamic_update_slice(written, row, prim.constant(0, "int64"), start)


def sorted_rows(a, b):
    return prim.maximum(prim.sort(a, axis=1), prim.minimum(b, prim.reverse(a, axes=(0,))))


def bits(a, b):
    same = prim.bitcast(prim.bitcast(a, dtype="int32" if a.dtype == "float32" else "int64"), dtype=a.dtype)
    state = prim.constant(7, "uint64", (2,))
    drawn = prim.shift_right(prim.rng_bits(state, shape=a.shape, counter=3), prim.constant(28, "uint32", a.shape))
    size = prim.cast(prim.dim_size(dim=a.shape[0]), dtype=a.dtype)
    return prim.select(prim.gt(prim.cast(drawn, dtype=a.dtype), prim.broadcast(size, shape=a.shape, axes=())), same, b)


EXACT = {
    "neg": lambda a, b: prim.neg(a), "abs": lambda a, b: prim.abs(a), "sign": lambda a, b: prim.sign(a),
    "floor": lambda a, b: prim.floor(a), "ceil": lambda a, b: prim.ceil(a), "round": lambda a, b: prim.round(a),
    "nextafter": lambda a, b: prim.nextafter(a, b), "views": views, "of_whole": of_whole, "compared": compared,
    "places": places, "sorted_rows": sorted_rows, "bits": bits,
}  # fmt: skip


def grow(steps, x, y):
    """Exact values and smooth ones, which may be made of exact ones; the last of each."""
    exact, smooth = [x, y], [x, y]
    for name, i, j in steps:
        pool, table = (exact, EXACT) if name in EXACT else (smooth, SMOOTH)
        made = table[name](pool[i % len(pool)], pool[j % len(pool)])
        pool.append(made)
        if pool is exact:
            smooth.append(made)
    return [exact[-1], exact[len(exact) // 2], smooth[-1], smooth[len(smooth) // 2]]


def compare(steps, dtype, rows, columns, layouts):
    rng = np.random.default_rng(rows * 1000 + columns)
    arrays = [strided(np.round(values(rng, (rows, columns), dtype, -9, 9), 1), kind) for kind in layouts]
    program = build(lambda x, y: grow(steps, x, y), arrays)
    want, _ = interpret(program, arrays)
    executable = CinnCompiler().compile(program, device("cpu"))
    found = []
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            found.append([r.array().copy() for r in executable.run([StridedArray.from_array(a) for a in arrays])])
    finally:
        set_threads(1)
    for got in found:
        for i, (g, w, first) in enumerate(zip(got, want, found[0], strict=True)):
            assert_equal(g, w, 0 if i < 2 else 1000, f"{i} of {steps}")
            assert g.tobytes() == first.tobytes(), "threads change bits"
    return program


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*SMOOTH, *EXACT])
def test_each_step_alone(name, dtype):
    for rows, columns in ((1, 1), (7, 13)):
        compare([(name, 0, 1), (name, 1, 2)], dtype, rows, columns, (0, 0))


def test_every_primitive_is_part_of_some_program():
    x = np.ones((3, 4), np.float32)
    steps = [(name, 0, 1) for name in (*SMOOTH, *EXACT)]
    found = {op.kind for op in build(lambda x, y: grow(steps, x, y), [x, x]).block}
    assert PRIMITIVES.keys() - found == ELSEWHERE


recipes = st.tuples(
    st.lists(
        st.tuples(st.sampled_from([*SMOOTH, *EXACT]), st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=14
    ),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([1, 2, 5, 7, 13, 31]),
    st.sampled_from([1, 3, 11, 17, 64, 101]),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(recipes)
def test_random_programs_of_all_primitives_equal_the_interpreter_on_any_threads(recipe):
    compare(*recipe)

"""Random programs of every dtype: sizes 0, 1 and primes, arguments with any strides, 1, 2 and 4 threads."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import DTYPES, assert_equal, build, values

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
#: What reference kernels alone compute with.
STORED = ("float8_e4m3fn", "float8_e5m2")
ALL = (*FLOATS, *WHOLE, "bool", *COMPLEX, *STORED)


def is_float(x):
    return x.dtype in FLOATS


def bounded(x):
    """Floats stay small, so that rounding stays small; whole numbers wrap around."""
    if x.dtype in COMPLEX:
        return prim.mul(x, prim.constant(0.5, x.dtype, x.shape))
    return prim.tanh(x) if is_float(x) else x


def arithmetic(a, b, i):
    if a.dtype == "bool":
        return getattr(prim, ("logical_and", "logical_or", "logical_xor", "maximum", "minimum")[i % 5])(a, b)
    names = ("add", "sub", "mul") if a.dtype in COMPLEX else ("add", "sub", "mul", "maximum", "minimum")
    return bounded(getattr(prim, names[i % len(names)])(a, b))


def alone(a, b, i):
    if a.dtype == "bool":
        return prim.logical_not(a)
    if a.dtype in COMPLEX:
        return (prim.neg, prim.conj)[i % 2](a)
    if is_float(a):
        return (prim.neg, prim.abs, prim.tanh, prim.logistic)[i % 4](a)
    return prim.neg(a) if i % 2 or a.dtype.startswith("u") else prim.abs(a)


def chosen(a, b, i):
    """A condition is made of positions: rounding must not decide."""
    place = prim.iota(shape=a.shape, axis=i % len(a.shape), dtype="int32")
    return prim.select(prim.eq(prim.rem(place, 3), 0), a, b)


def turned(a, b, i):
    rows, columns = a.shape
    flat = prim.transpose(prim.reshape(a, shape=(columns, rows)), permutation=(1, 0))
    return prim.reverse(flat, axes=(i % 2,))


def cut(a, b, i):
    axis = i % 2
    n = a.shape[axis]
    half = [(0, 0), (0, 0)]
    half[axis] = (n // 2, n)
    tail = prim.slice(a, start=tuple(h[0] for h in half), stride=(1, 1),
                      limit=tuple(h[1] or s for h, s in zip(half, a.shape, strict=True)))  # fmt: skip
    limit = tuple(n // 2 if k == axis else s for k, s in enumerate(a.shape))
    return prim.concat(tail, prim.slice(b, start=(0, 0), limit=limit, stride=(1, 1)), axis=axis)


def reduced(a, b, i):
    if 0 in a.shape:
        return a
    axes = ((0,), (1,), (0, 1))[i % 3]
    kinds = ("reduce_and", "reduce_or") if a.dtype == "bool" else ("reduce_sum", "reduce_max", "reduce_min")
    total = getattr(prim, "reduce_sum" if a.dtype in COMPLEX else kinds[i % len(kinds)])(a, axes=axes)
    count = float(a.shape[0] * a.shape[1])
    total = prim.div(total, prim.constant(count, a.dtype, total.shape)) if a.dtype in COMPLEX else bounded(total)
    kept = tuple(k for k in (0, 1) if k not in axes)
    return arithmetic(b, prim.broadcast(total, shape=a.shape, axes=kept), i)


def running(a, b, i):
    if a.dtype in ("bool", "float16", "bfloat16", *STORED) or 0 in a.shape:
        return a
    if a.dtype in COMPLEX:
        total = prim.cumulative(a, axis=i % 2, kind="sum", reverse=bool(i % 3))
        return prim.div(total, prim.constant(float(a.shape[i % 2]), a.dtype, a.shape))
    return bounded(prim.cumulative(a, axis=i % 2, kind=("sum", "max")[i % 2], reverse=bool(i % 3)))


def product(a, b, i):
    if a.dtype not in ("float32", "float64", "int32", "int64", *COMPLEX):
        return a
    gram = prim.dot_general(a, b, lhs_contract=(1,), rhs_contract=(1,))
    if a.dtype in COMPLEX:
        scale = prim.constant(1 / (1.0 + a.shape[0] * a.shape[1]), a.dtype, a.shape)
        return prim.mul(prim.dot_general(gram, a, lhs_contract=(1,), rhs_contract=(0,)), scale)
    return bounded(prim.dot_general(bounded(gram), a, lhs_contract=(1,), rhs_contract=(0,)))


def there_and_back(a, b, i):
    """Through a wider dtype, which keeps every number."""
    wider = {"float32": "float64", "float16": "float32", "bfloat16": "float32", "bool": "int32", "int8": "int64",
             "int16": "int32", "int32": "int64", "uint8": "int32", "uint16": "int32", "uint32": "int64",
             "float8_e4m3fn": "float16", "float8_e5m2": "float16"}.get(a.dtype)  # fmt: skip
    return a if wider is None else prim.cast(prim.cast(a, dtype=wider), dtype=a.dtype)


def counted(shape, axis, factor, below):
    """Whole numbers that repeat in an order of their own: indices and keys that no rounding decides."""
    place = prim.iota(shape=shape, axis=axis, dtype="int64")
    return prim.rem(prim.mul(place, factor), below)


def indexed(a, b, i):
    """Rows looked up or written at places of which some repeat, and some are outside."""
    rows = a.shape[0]
    if 0 in a.shape:
        return a
    places = counted((rows, 1), 0, i + 1, rows + 1)
    if i % 2:
        return prim.gather(a, places, axes=(0,))
    return prim.scatter(a, places, b, axes=(0,), kind="set")


def ordered(a, b, i):
    return prim.sort(counted(a.shape, i % 2, 7, 5), a, axis=i % 2, descending=bool(i % 3))[1]


def replaced(a, b, i):
    """A block of half of the rows, or of all of them, put in where a computed number says."""
    rows = a.shape[0] if i % 3 else (a.shape[0] + 1) // 2
    block = prim.slice(b, start=(0, 0), limit=(rows, a.shape[1]), stride=(1, 1))
    start = prim.reduce_sum(prim.cumulative(counted((5,), 0, i, 7), axis=0, kind="sum"), axes=(0,))
    return prim.dynamic_update_slice(a, block, start, prim.constant(3, "int32"))


def filtered(a, b, i):
    """Sums over three neighbours."""
    if a.dtype in ("bool", *STORED) or 0 in a.shape:
        return a
    rows, columns = a.shape
    image = prim.reshape(a, shape=(rows, 1, columns) if i % 2 else (1, rows, columns))
    weights = prim.constant(1, a.dtype, (1, 1, 3) if i % 2 else (rows, rows, 3))
    made = prim.conv(image, weights, strides=(1,), padding=((1, 1),), lhs_dilation=(1,), rhs_dilation=(1,))
    made = prim.reshape(made, shape=a.shape)
    count = float(3 if i % 2 else 3 * rows)
    return prim.div(made, prim.constant(count, a.dtype, a.shape)) if a.dtype in (*COMPLEX, *FLOATS) else made


STEPS = (
    arithmetic, arithmetic, alone, chosen, turned, cut, reduced, running, product, there_and_back, indexed, ordered,
    replaced, filtered,
)  # fmt: skip


def strided(array, kind):
    """The same numbers in other memory: as they are, transposed, far apart, backwards, or one number repeated."""
    if kind == 1:
        return np.ascontiguousarray(array.T).T
    if kind == 2:
        wide = np.zeros((array.shape[0], array.shape[1] * 37 + 1), array.dtype)
        view = wide[:, : array.shape[1] * 37 : 37]
        view[...] = array
        return view
    if kind == 3:
        return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]
    if kind == 4 and array.size:
        return np.broadcast_to(array[:1], array.shape)
    return array


def random_values(rng, shape, dtype):
    if dtype in COMPLEX:
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return values(rng, shape, dtype, -1, 1)


recipes = st.tuples(
    st.sampled_from(ALL),
    st.sampled_from([0, 1, 2, 7, 13, 31, 64]),
    st.sampled_from([0, 1, 3, 11, 17, 101]),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=9),
    st.sampled_from(["", "before", "behind"]),
)
#: Rounding steps that add up in nine operations; all steps of narrow floats round alike.
SCALES = {"float16": 20, "bfloat16": 10, "float8_e4m3fn": 1, "float8_e5m2": 1}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(recipes)
def test_programs_of_any_dtype_and_strides_equal_the_interpreter_on_any_threads(recipe):
    dtype, rows, columns, layouts, steps, guard = recipe
    rng = np.random.default_rng(rows * 1000 + columns)
    plain = [random_values(rng, (rows, columns), dtype) for _ in layouts]
    arrays = [strided(a, kind) for a, kind in zip(plain, layouts, strict=True)]
    assert arrays[0].dtype == DTYPES.get(dtype, dtype)

    def program(x, y):
        found = [x, y]
        for step, i, j in steps:
            found.append(step(found[i % len(found)], found[j % len(found)], i + j))
        return [found[-1], found[len(found) // 2]]

    made = build(program, arrays)
    want, _ = interpret(made, arrays)
    executable = CinnCompiler().compile(made, device("cpu"), options={"guard": guard})
    results = []
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            results.append([r.array().copy() for r in executable.run([StridedArray.from_array(a) for a in arrays])])
    finally:
        set_threads(1)
    for got in results:
        for g, w, first in zip(got, want, results[0], strict=True):
            assert_equal(g, w, SCALES.get(dtype, 200), f"{dtype} {made}")
            assert g.tobytes() == first.tobytes(), "threads change bits"

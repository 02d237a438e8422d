"""Sorting has native code: any dtype, axis, direction and number of keys; always stable, NaN largest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check, values

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64",
)  # fmt: skip


def some(rng, shape, dtype):
    """Values with ties, zeros of both signs, infinities and NaN."""
    x = values(rng, shape, dtype, -3, 3)
    if x.size and x.dtype.kind not in "iub":
        x = np.round(x.astype(np.float64)).astype(x.dtype)
        x.flat[::7], x.flat[1::11], x.flat[3::13] = np.nan, -0.0, np.inf
    return x


def with_positions(axis, descending, keys=1):
    def program(*xs):
        position = prim.iota(shape=xs[0].shape, axis=axis, dtype="int64")
        return prim.sort(*xs, position, axis=axis, keys=keys, descending=descending)

    return program


def native(function, *arguments):
    """Equal to the interpreter's, positions included, with no host call."""
    report = check(function, *arguments, scale=0).report()
    assert report["host_calls"] == {}
    return report


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_every_dtype_sorts_by_rank_and_by_radix(dtype, descending):
    rng = np.random.default_rng(1)
    for shape in ((3, 37), (2, 700)):
        native(with_positions(1, descending), some(rng, shape, dtype))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 17, 64, 300]), min_size=1, max_size=3).filter(lambda s: np.prod(s) < 30_000),
    st.integers(0, 2), st.sampled_from(["float32", "int64", "int8"]), st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_any_shape_axis_and_number_of_keys(shape, axis, dtype, keys, descending):
    rng = np.random.default_rng(len(shape))
    made = [some(rng, shape, d) for d in (dtype, "int8", "float64")[:keys]]
    native(with_positions(axis % len(shape), descending, keys), *made)


def test_one_operand_alone_and_a_chosen_part():
    rng = np.random.default_rng(2)
    native(lambda x: prim.sort(x, axis=0), some(rng, (90, 3), "float32"))

    def largest(x):
        found, places = with_positions(1, True)(x)
        cut = {"start": (0, 0), "limit": (4, 5), "stride": (1, 1)}
        return [prim.slice(found, **cut), prim.slice(places, **cut)]

    native(largest, some(rng, (4, 2000), "float32"))


def test_what_is_sorted_may_be_computed_first_and_used_after():
    def program(x, w):
        y = prim.tanh(prim.mul(x, w))
        ordered, places = with_positions(1, False)(prim.round(prim.mul(y, 50.0)))
        return [prim.reduce_sum(prim.mul(ordered, 0.5), axes=(1,)), prim.reduce_max(places, axes=(0,))]

    rng = np.random.default_rng(4)
    check(program, *(rng.uniform(-1, 1, (6, 400)).astype(np.float32) for _ in range(2)), scale=20)


def test_a_key_of_all_bits_that_are_equal_but_one_digit():
    x = (np.arange(3000) % 256 * (1 << 16)).astype(np.uint64)
    native(with_positions(0, False), x)
    native(with_positions(0, True), x.astype(np.int32))


def test_rows_are_shared_by_threads_without_changing_anything():
    x = some(np.random.default_rng(5), (200, 300), "float32")
    made = build(with_positions(1, False), [x])
    want, _ = interpret(made, [x])
    executable = CinnCompiler().compile(made, device("cpu"))
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            for g, w in zip(executable.run([StridedArray.from_array(x)]), want, strict=True):
                np.testing.assert_array_equal(g.array(), w)
    finally:
        set_threads(1)

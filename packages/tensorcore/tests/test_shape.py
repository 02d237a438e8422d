"""Shapes, strides and which reshapes are views."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from argosy_tensorcore import Size
from argosy_tensorcore.shape import (
    broadcast_shapes,
    contiguous_strides,
    extent,
    is_contiguous,
)

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def test_size_is_a_list_that_equals_tuples():
    """A Size equals lists and tuples, gives Sizes when sliced, and hashes as the tuple does."""
    size = Size([2, 3, 4])
    assert size == [2, 3, 4] == size
    assert size == (2, 3, 4)
    assert size != (2, 3)
    assert type(size[1:]) is Size
    assert type(size + [5]) is type((1,) + size) is Size  # noqa: RUF005
    assert size.numel() == 24
    assert repr(size) == "paddle.Size([2, 3, 4])"
    assert {size} == {(2, 3, 4)}


@given(shapes)
@settings(deadline=None)
def test_contiguous_strides_walk_row_major(shape):
    """Strides are numpy's for arrays that hold elements, and always count as contiguous."""
    strides = contiguous_strides(shape)
    assert is_contiguous(shape, strides)
    if np.prod(shape):
        assert strides == element_strides(np.empty(shape, np.int8))


@st.composite
def strided_arrays(draw):
    """An array seen through transposition, steps, reversal and broadcasting."""
    base = np.arange(256, dtype=np.int32).reshape(draw(st.sampled_from([(4, 4, 4, 4), (16, 16), (2, 8, 16), (256,)])))
    view = base.transpose(draw(st.permutations(range(base.ndim))))
    view = view[tuple(slice(None, draw(st.integers(0, n)), draw(st.sampled_from([1, 2, -1]))) for n in view.shape)]
    if draw(st.booleans()):
        view = np.broadcast_to(view[..., None], (*view.shape, draw(st.integers(1, 3))))
    return view


@given(strided_arrays())
@settings(deadline=None)
def test_contiguity_is_numpys(array):
    """is_contiguous agrees with numpy on every view."""
    assert is_contiguous(array.shape, element_strides(array)) == array.flags.c_contiguous


@given(hnp.mutually_broadcastable_shapes(num_shapes=3))
@settings(deadline=None)
def test_shapes_broadcast_as_in_numpy(generated):
    """The broadcast of several shapes is numpy's."""
    assert broadcast_shapes(*generated.input_shapes) == generated.result_shape


def test_shapes_that_do_not_broadcast_are_named():
    """The error names the shapes and the axis."""
    with pytest.raises(ValueError, match=r"\[2, 3\] and \[4\].*axis -1 has sizes 3 and 4"):
        broadcast_shapes((2, 3), (4,))
    assert broadcast_shapes() == ()


@given(strided_arrays())
@settings(deadline=None)
def test_extent_bounds_what_a_view_touches(array):
    """The lowest and highest elements of a view are those its indices reach."""
    low, high = extent(array.shape, element_strides(array))
    if array.size == 0:
        assert (low, high) == (0, 0)
        return
    start = array.__array_interface__["data"][0]
    reached = [
        (array[i : i + 1].__array_interface__["data"][0] - start) // 4 if array.ndim == 1 else None
        for i in range(len(array))
    ]
    if array.ndim == 1:
        assert (min(reached), max(reached) + 1) == (low, high)
    bounds = np.lib.array_utils.byte_bounds(array)
    assert (bounds[0] - start, bounds[1] - start) == (4 * low, 4 * high)

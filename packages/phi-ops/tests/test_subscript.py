"""Indexing tensors means what indexing arrays means, numbers before tensors, eagerly and captured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import AxisError, DTypeError
from argosy_phi_ops.ops.common.subscript_keys import parse
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

SHAPE = (4, 3, 5)
X = np.arange(60.0).reshape(SHAPE)


@st.composite
def subscripts(draw):
    """An index of X: integers, slices, new axes, an ellipsis, integer arrays that broadcast together."""
    used = draw(st.integers(0, 3))
    ellipsis_at = draw(st.one_of(st.none(), st.integers(0, used)))
    parts, axis = [], 0
    for i in range(used):
        if ellipsis_at == i:
            parts.append(Ellipsis)
            axis += 3 - used
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
        size = SHAPE[axis]
        axis += 1
        parts.append(draw(st.one_of(
            st.integers(-size, size - 1),
            st.slices(size),
            hnp.arrays(np.int64, st.sampled_from([(2,), (1,), (3, 2), ()]), elements=st.integers(-size, size - 1)),
        )))  # fmt: skip
    if ellipsis_at == used:
        parts.append(Ellipsis)
    return tuple(parts)


def as_tensors(subscript):
    return tuple(Tensor(part) if isinstance(part, np.ndarray) else part for part in subscript)


def numbers_first(array, subscript):
    """A view of `array` at the numbers of a subscript that has arrays, too, and the rest of that."""
    if not any(isinstance(part, np.ndarray) for part in subscript):
        return array, subscript
    kept = [
        part if isinstance(part, int) or part is Ellipsis else slice(None) for part in subscript if part is not None
    ]
    return array[tuple(kept)], tuple(part for part in subscript if not isinstance(part, int))


@settings(max_examples=300, deadline=None)
@given(subscripts())
def test_reading_agrees_with_numpy(subscript):
    view, rest = numbers_first(X, subscript)
    expected = view[rest]
    result = Tensor(X.copy())[as_tensors(subscript)]
    np.testing.assert_array_equal(result.numpy(), expected)
    assert tuple(result.shape) == expected.shape


@settings(max_examples=200, deadline=None)
@given(subscripts())
def test_writing_agrees_with_numpy(subscript):
    expected = X.copy()
    view, rest = numbers_first(expected, subscript)
    value = -1 - np.arange(float(view[rest].size)).reshape(view[rest].shape)
    view[rest] = value
    times = np.zeros(SHAPE)
    view, rest = numbers_first(times, subscript)
    np.add.at(view, rest, 1)
    once = times <= 1  # of places named twice one wins
    x = Tensor(X.copy())
    x[as_tensors(subscript)] = Tensor(value)
    np.testing.assert_array_equal(x.numpy()[once], expected[once])
    np.testing.assert_array_equal(decomposed_setitem(subscript, value)[once], expected[once])


def decomposed_setitem(subscript, value):
    key, tensors = parse(as_tensors(subscript))
    op = get_operator("setitem")
    operands, attributes = op.signature.bind((Tensor(X), tensors, Tensor(value), key), {})
    arrays = [x.payload.array() for x in operands]
    expansion = op.expand([TensorType(a.shape, a.dtype.name) for a in arrays], attributes)
    return interpret(expansion.program, arrays)[0][0]


@pytest.mark.parametrize("mask_axes", [1, 2, 3])
def test_masks_select_and_assign(mask_axes):
    mask = np.random.default_rng(0).random(SHAPE[:mask_axes]) < 0.5
    x = Tensor(X.copy())
    np.testing.assert_array_equal(x[Tensor(mask)].numpy(), X[mask])
    x[Tensor(mask)] = -1.0
    expected = X.copy()
    expected[mask] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
    values = np.arange(float(X[mask].size)).reshape(X[mask].shape)
    expected[mask] = values
    x[Tensor(mask)] = Tensor(values)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_basic_indexing_gives_views_and_tensor_indices_copies():
    x = Tensor(X.copy())
    row, copied = x[1], x[Tensor(np.array([1]))]
    row[0] = 99.0
    assert float(x[1, 0, 0]) == 99
    assert row.payload.shares_storage(x.payload)
    assert float(copied[0, 0, 0]) == X[1, 0, 0]
    assert x.payload.version == 1


def test_numbers_do_not_move_the_axes_of_tensors():
    """The axes that a tensor gives stay in its place beside a number elsewhere, as in Paddle; in numpy they move."""
    x, i = Tensor(X.copy()), Tensor(np.array([0, 2]))
    np.testing.assert_array_equal(x[1, :, i].numpy(), X[1][:, [0, 2]])
    np.testing.assert_array_equal(x[1, ..., i].numpy(), X[1][..., [0, 2]])
    x[1, :, i] = Tensor(-np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(x.numpy()[1][:, [0, 2]], -np.arange(6.0).reshape(3, 2))


def test_in_asks_for_an_equal_element():
    """``item in x`` is whether any element equals it."""
    x = Tensor(X.copy())
    assert 7 in x
    assert Tensor(7.0) in x
    assert -1 not in x
    assert 1 not in Tensor(np.zeros((0, 3)))
    assert None not in x


def test_lists_and_numpy_integers_are_indices():
    x = Tensor(X.copy())
    np.testing.assert_array_equal(x[[0, 2]].numpy(), X[[0, 2]])
    np.testing.assert_array_equal(x[np.int64(1)].numpy(), X[1])
    np.testing.assert_array_equal(x[[True, False, False, True]].numpy(), X[[0, 3]])
    np.testing.assert_array_equal(x[((0, 2),)].numpy(), X[[0, 2]])


@pytest.mark.parametrize(
    "index", [False, (0, False), (slice(None), False), (Ellipsis, False, slice(1, 2)), (False, None, 1)], ids=str
)
def test_a_false_takes_nothing(index):
    """A 0-D False gives an axis without elements, as in numpy, and writing there writes nothing."""
    x = Tensor(X.copy())
    assert x[index].shape == list(X[index].shape)
    x[index] = 7.0
    np.testing.assert_array_equal(x.numpy(), X)


def test_wrong_indices_are_named():
    x = Tensor(X.copy())
    with pytest.raises(IndexError):
        x[4]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0, 0, 0]
    with pytest.raises(AxisError, match="one ellipsis"):
        x[..., ...]
    with pytest.raises(DTypeError, match="float64"):
        x[Tensor(np.array([1.0]))]
    with pytest.raises(ValueError, match="str 'a'"):
        x["a"]

"""Attributes, indexing and in-place methods of ``Tensor``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, attribute_of, call
from parity.inputs import given
from parity.inputs import tensor as t

KEYS: tuple[Any, ...] = (
    0, -1, slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1), ..., None,
    (0, 1), (slice(None), 1), (slice(1, 2), slice(None), 0), (..., 0), (0, ...), (None, slice(None), None),
    (1, ..., None), (slice(2, 1),), [0, 1], [1, 0, 1], ([0, 1], [2, 0]), (slice(None), [0, 2]), (0, [0, 2]),
    ([0, 1], slice(None), 1), ([1, 0], slice(None), [0, 2]), True, (slice(-2, None), slice(0, 3, 2)), 5,
)  # fmt: skip


def cases() -> Iterator[Case]:
    for key in KEYS:
        yield call("Tensor.__getitem__", t(2, 3, 4), key)
        yield call("Tensor.__setitem__", t(2, 3, 4), key, 1.5)
    tensors = (
        given([1, 0], "int64"), given([[1, 0], [0, 0]], "int64"), given(1, "int64"), given([1], "int32"),
        given([True, False], "bool"),
    )  # fmt: skip
    for index in tensors:
        yield call("Tensor.__getitem__", t(2, 3, 4), index)
        yield call("Tensor.__setitem__", t(2, 3, 4), index, 1.5)
        yield call("Tensor.__getitem__", t(2, 3, 4), (index, 0))
    yield call("Tensor.__getitem__", t(2, 3), t(2, 3, dtype="bool"))
    yield call("Tensor.__getitem__", t(2, 3, layout="T"), 1)
    yield call("Tensor.__getitem__", t(3, dtype="int64"), slice(0, 2))
    yield call("Tensor.__getitem__", t(), 0)
    yield call("Tensor.__getitem__", t(), ...)
    yield call("Tensor.__setitem__", t(2, 3), t(2, 3, dtype="bool"), 0.0)
    yield call("Tensor.__setitem__", t(2, 3), 0, t(3))
    yield call("Tensor.__setitem__", t(2, 3), slice(None), t(2, 1))
    yield call("Tensor.__setitem__", t(2, 3), (slice(None), 1), t(2))
    yield call("Tensor.__setitem__", t(2, 3), [0, 0], t(2, 3))
    yield call("Tensor.__setitem__", t(2, 3, dtype="int64"), 0, 3)
    for name in ("shape", "ndim", "T", "mT", "stop_gradient", "is_leaf", "size", "persistable", "itemsize", "nbytes"):
        for x in (t(2, 3, grad=False), t(2, 3, layout="T", grad=False), t(2, 2, dtype="int64")):
            yield attribute_of(f"Tensor.{name}", x)
    for shape in ((), (3,), (2, 3, 4)):
        yield attribute_of("Tensor.T", t(*shape))
        yield attribute_of("Tensor.shape", t(*shape, grad=False))
        yield attribute_of("Tensor.size", t(*shape, grad=False))
    yield call("Tensor.__len__", t(2, 3))
    yield call("Tensor.dim", t(2, 3))
    yield call("Tensor.item", t(1))
    yield call("Tensor.item", t(2, 3), 1, 2)
    yield call("Tensor.tolist", t(2, dtype="int64"))
    yield call("Tensor.__bool__", t())
    yield call("Tensor.__float__", t(1))
    yield call("Tensor.__int__", t())
    yield call("Tensor.zero_", t(2))
    yield call("Tensor.fill_", t(2), 3.0)
    yield call("Tensor.set_value", t(2, grad=False), t(2, grad=False))
    yield call("Tensor.detach", t(2))
    yield call("Tensor.contiguous", t(2, 3, layout="T"))
    yield call("Tensor.is_contiguous", t(2, 3, layout="T"))
    yield call("Tensor.element_size", t(2, dtype="int64"))
    yield call("Tensor.numpy", t(2, 3, layout="T"))

"""Other ways to write calls: sizes one by one, an axis before the index, other names of parameters."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

INDEX = [[0, 1, 0], [1, 0, 1]]


def cases() -> Iterator[Case]:
    yield from _sizes()
    yield from _axes()
    yield from _gathering()
    yield from _scattering()
    yield from _names()


def _sizes() -> Iterator[Case]:
    for owner in ("", "Tensor."):
        yield call(f"{owner}reshape", t(2, 3, 4), 6, 4)
        yield call(f"{owner}reshape", t(2, 3, 4), 24)
        yield call(f"{owner}reshape", t(2, 3, 4), -1, 2, given(3, "int64"))
        yield call(f"{owner}reshape", t(2, 3), 4, 2)
        yield call(f"{owner}view", t(2, 3, 4), 6, -1)
        yield call(f"{owner}view", t(2, 3, 4), 24)
        yield call(f"{owner}view", t(2, 3, 4), size=[4, 6])
        yield call(f"{owner}view", t(2, 3, 4), dtype="int32")
        yield call(f"{owner}expand", t(1, 3), 4, 3)
        yield call(f"{owner}expand", t(1, 3), -1, 3)
        yield call(f"{owner}expand", t(1), 5)
    for name in ("zeros", "ones"):
        yield call(name, 2, 3)
        yield call(name, 2, 3, dtype="int32")
        yield call(name, 2, 0, 4, dtype="float64")


def _axes() -> Iterator[Case]:
    for owner in ("", "Tensor."):
        yield call(f"{owner}transpose", t(2, 3, 4), 0, 1)
        yield call(f"{owner}transpose", t(2, 3, 4), -1, 0)
        yield call(f"{owner}transpose", t(2, 3, 4), 0, 3)
        yield call(f"{owner}transpose", t(2, 3, 4), dim0=0, dim1=2)
        yield call(f"{owner}sum", t(2, 3, 4), 1, True)
        yield call(f"{owner}sum", t(2, 3, 4), [0, 2], True, "float64")
        yield call(f"{owner}sum", t(2, 3, 4), 1, "float64")
        yield call(f"{owner}sum", t(2, 3, 4), 1, "float64", True)
        yield call(f"{owner}median", t(3, 4), dim=1)
        yield call(f"{owner}median", t(3, 4), dim=0, keepdim=True)
        yield call(f"{owner}median", t(3, 4), 1)
        yield call(f"{owner}median", t(3, 4), dim=1, mode="avg")


def _gathering() -> Iterator[Case]:
    for owner in ("", "Tensor."):
        for axis in (0, 1, -1):
            yield call(f"{owner}gather", t(2, 3), axis, given(INDEX, "int64"))
            yield call(f"{owner}gather", t(2, 3), dim=axis, index=given(INDEX, "int64"))
        yield call(f"{owner}gather", t(2, 3), 1, given([[2]], "int64"))
        yield call(f"{owner}gather", t(2, 3), 2, given(INDEX, "int64"))
        yield call(f"{owner}index_select", t(2, 3, 4), 1, given([2, 0], "int64"))
        yield call(f"{owner}index_select", t(2, 3, 4), -1, given([2, 0], "int64"))
        yield call(f"{owner}index_select", t(2, 3, 4), dim=1, index=given([2, 0], "int64"))
    yield call("gather", input=t(2, 3), dim=1, index=given(INDEX, "int64"))
    yield call("index_select", input=t(2, 3, 4), dim=1, index=given([2, 0], "int64"))


def _scattering() -> Iterator[Case]:
    for name in ("scatter", "Tensor.scatter", "Tensor.scatter_"):
        yield call(name, t(2, 3), 0, given(INDEX, "int64"), t(2, 3))
        yield call(name, t(2, 3), 1, given([[0, 2, 1], [2, 1, 0]], "int64"), t(2, 3))
        yield call(name, t(2, 3), 0, given(INDEX, "int64"), 2.5)
        yield call(name, t(2, 3), 0, given(INDEX, "int64"), value=2.5)
        yield call(name, t(2, 3), dim=0, index=given(INDEX, "int64"), src=t(2, 3))
        for reduce in ("add", "multiply"):
            yield call(name, t(2, 3), 0, given(INDEX, "int64"), t(2, 3), reduce=reduce)
        yield call(name, t(2, 3), 0, given(INDEX, "int64"))
    for name in ("index_add", "Tensor.index_add", "Tensor.index_add_"):
        yield call(name, t(2, 3), 0, given([1, 0], "int64"), t(2, 3))
        yield call(name, t(2, 3), 1, given([1, 0, 1], "int64"), t(2, 3), alpha=2)
        yield call(name, t(2, 3), dim=0, index=given([1, 0], "int64"), source=t(2, 3), alpha=2)


def _names() -> Iterator[Case]:
    for name in ("indices_or_sections", "indices", "sections"):
        yield call("tensor_split", t(2, 3, 4), dim=2, **{name: [1, 2]})
    yield call("tensor_split", t(2, 3, 4), sections=2, dim=2)
    yield call("roll", t(2, 3), shifts=1, dims=0)
    yield call("bmm", input=t(2, 3, 4), mat2=t(2, 4, 5))
    yield call("pow", input=t(2, 3, low=1, high=2), exponent=2)
    yield call("Tensor.pow", t(2, 3, low=1, high=2), exponent=2.5)
    yield call("diagonal", input=t(2, 3, 4), dim1=1, dim2=2)
    yield call("Tensor.diagonal", t(2, 3, 4), dim1=1, dim2=2)
    yield call("isin", elements=given([1, 2], "int64"), test_elements=given([2], "int64"))
    yield call("bucketize", input=t(2, 3), boundaries=given([-1.0, 0.0, 1.0], "float32"))
    yield call("vector_norm", t(2, 3), ord=3.0)
    yield call("norm", A=t(2, 3), ord=2)
    yield call("unfold", t(5), dimension=0, size=2, step=2)
    functional = "nn.functional."
    yield call(f"{functional}silu", input=t(2, 3))
    yield call(f"{functional}dropout", input=t(2, 3), p=0.0)
    yield call(f"{functional}embedding", input=given([1, 0], "int64"), weight=t(2, 3))
    yield call(f"{functional}pairwise_distance", x1=t(2, 3), x2=t(2, 3), eps=0.1)
    yield call(f"{functional}adaptive_max_pool1d", t(1, 2, 6), 3, return_indices=True)
    yield call(f"{functional}adaptive_max_pool2d", t(1, 2, 6, 4), 2, return_indices=True)
    yield call(f"{functional}adaptive_max_pool3d", t(1, 2, 4, 4, 4), 2, return_indices=True)
    yield call(f"{functional}fold", input=t(1, 4, 9), output_size=[4, 4], kernel_size=2)
    yield call(f"{functional}fold", t(1, 4, 4), output_size=[4, 4], kernel_size=2, stride=2, padding=0, dilation=1)

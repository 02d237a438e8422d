"""Gathering, scattering, selection and search."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import Input, given
from parity.inputs import tensor as t

NAN = float("nan")


def ids(*shape: int, below: int = 3, dtype: str = "int64") -> Input:
    """Indices in [0, below)."""
    return t(*shape, dtype=dtype, low=0, high=below)


def cases() -> Iterator[Case]:
    yield from _gathers()
    yield from _scatters()
    yield from _masks()
    yield from _sorting()
    yield from _searching()


def _gathers() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int64", "bool"):
        yield call("gather", t(3, 4, dtype=dtype), ids(5))
        yield call("index_select", t(3, 4, dtype=dtype), ids(5), 1)
        yield call("take_along_axis", t(3, 4, dtype=dtype), ids(2, 4), 0)
    for axis in (0, 1, -1):
        yield call("gather", t(3, 4, 3), ids(2), axis)
        yield call("gather", t(3, 4, 3), ids(2, dtype="int32"), axis=axis)
        yield call("index_select", t(3, 4, 3), ids(2), axis)
        yield call("take_along_axis", t(3, 4, 3), ids(3, 4, 3), axis)
        yield call("put_along_axis", t(3, 4, 3), given([[[0]]], "int64"), 7.0, axis)
    yield call("gather", t(3, 4), given(1, "int64"))
    yield call("gather", t(3, 4), given([[1], [2]], "int64"))
    yield call("gather", t(3, 4), ids(0))
    yield call("gather", t(3, 4), given([5], "int64"))
    yield call("gather", t(3, 4, layout="T"), ids(2))
    yield call("gather_nd", t(3, 4, 3), ids(2, 2))
    yield call("gather_nd", t(3, 4, 3), ids(2, 3))
    yield call("gather_nd", t(3, 4, 3), ids(2, 2, 1))
    yield call("gather_nd", t(3, 4), ids(2, 0))
    yield call("index_sample", t(3, 4), ids(3, 2))
    for mode in ("raise", "wrap", "clip"):
        yield call("take", t(3, 4), given([[0, 5], [-1, 11]], "int64"), mode)
    yield call("take_along_axis", t(3, 4), ids(1, 4), 0)
    yield call("take_along_axis", t(3, 4), ids(3, 2), 1, False)
    yield call("take_along_axis", t(3, 4), given([[-1, 0]], "int64"), 1)


def _scatters() -> Iterator[Case]:
    index = given([2, 0], "int64")
    yield call("scatter", t(3, 4), index, t(2, 4))
    yield call("scatter", t(3, 4), index, t(2, 4), False)
    yield call("scatter", t(3, 4), given([1, 1], "int64"), t(2, 4), overwrite=False)
    yield call("scatter", t(3, 4), given([[1], [2]], "int64"), t(2, 4))
    yield call("scatter", t(3), index, t(2))
    yield call("scatter_nd_add", t(3, 4), ids(5, 1), t(5, 4))
    yield call("scatter_nd_add", t(3, 4), ids(5, 2), t(5))
    yield call("scatter_nd", ids(4, 1), t(4, 2), [3, 2])
    yield call("scatter_nd", ids(4, 2), t(4), [3, 4])
    for reduce in ("assign", "add", "mul", "multiply", "amin", "amax", "mean"):
        unique = given([[0, 1, 2], [1, 2, 0]], "int64")
        yield call("put_along_axis", t(3, 3), unique, t(2, 3), 0, reduce)
        yield call("put_along_axis", t(3, 3), unique, t(2, 3), 0, reduce, include_self=False)
        twice = given([[0, 1, 2], [0, 1, 2]], "int64", grad=False)
        if reduce != "assign":
            yield call("put_along_axis", t(3, 3, grad=False), twice, t(2, 3, grad=False), 0, reduce)
    yield call("put_along_axis", t(3, 3), given([[0, 1, 2]], "int64"), 5.0, 0)
    yield call("put_along_axis", t(3, 4), given([[0], [1], [2]], "int64"), t(3, 1), 1, broadcast=False)
    yield call("index_add", t(3, 4), given([0, 2, 0], "int64"), 0, t(3, 4))
    yield call("index_add", t(3, 4), given([0, 2], "int32"), 1, t(3, 2))
    yield call("index_fill", t(3, 4), index, 0, 1.5)
    yield call("index_fill", t(3, 4), index, 1, given(2.0))
    yield call("index_put", t(3, 4), (index, given([1, 1], "int64")), t(2))
    yield call("index_put", t(3, 4), (index, given([1, 1], "int64")), t(2), True)
    yield call("index_put", t(3, 4), (t(3, 4, dtype="bool"),), given(1.0))
    yield call("select_scatter", t(3, 4), t(4), 0, 1)
    yield call("slice_scatter", t(3, 4), t(3, 2), [1], [0], [4], [2])
    yield call("masked_scatter", t(2, 3), t(2, 3, dtype="bool"), t(6))


def _masks() -> Iterator[Case]:
    yield call("masked_select", t(2, 3), t(2, 3, dtype="bool"))
    yield call("masked_select", t(2, 3), t(3, dtype="bool"))
    yield call("masked_select", t(2, 3, dtype="int64"), given([[True] * 3, [False] * 3], "bool"))
    yield call("masked_select", t(), given(True, "bool"))
    for shape in ((5,), (2, 3), (), (0, 2)):
        yield call("nonzero", ids(*shape, below=2))
    yield call("nonzero", t(2, 3, dtype="bool"))
    yield call("nonzero", ids(2, 3, below=2), as_tuple=True)
    yield call("where", t(2, 3, dtype="bool"))
    repeated = given([3, 1, 2, 3, 1], "int64")
    yield call("unique", repeated)
    yield call("unique", repeated, True, True, True)
    yield call("unique", repeated, return_counts=True)
    yield call("unique", given([[1, 0], [1, 0], [2, 5]], "int64"), axis=0)
    yield call("unique", given([[1, 1, 0], [2, 2, 5]], "int64"), axis=1, return_inverse=True)
    yield call("unique", given([2.5, 1.5, 2.5], grad=False))
    yield call("unique", t(0, dtype="int64"))
    yield call("unique_consecutive", repeated)


def _sorting() -> Iterator[Case]:
    for name in ("sort", "argsort"):
        for axis in (0, 1, -1):
            yield call(name, t(3, 4), axis)
            yield call(name, t(3, 4), axis, True)
        for dtype in ("float64", "int32", "int64"):
            yield call(name, t(6, dtype=dtype, low=-50, high=50))
        yield call(name, given([2, 1, 2, 1], "int64"), stable=True)
        yield call(name, given([2, 1, 2, 1], "int64"), descending=True, stable=True)
        yield call(name, t(3, 4, layout="T"), 0)
        yield call(name, t())
        yield call(name, t(0, 3), 0)
        yield call(name, t(3), 1)
    for k in (1, 3):
        yield call("topk", t(3, 4), k)
        yield call("topk", t(3, 4), k, 0)
        yield call("topk", t(3, 4), k, -1, False)
    yield call("topk", t(3, 4, dtype="float64"), 2, sorted=True)
    yield call("topk", given([5, 1, 3], "int64"), 2)
    yield call("topk", t(3), 5)
    yield call("topk", t(), 1)
    yield call("kthvalue", t(3, 4), 2)
    yield call("kthvalue", t(3, 4), 1, 0, True)
    yield call("kthvalue", t(3), 5)
    yield call("mode", given([[2.0, 2.0, 1.0], [1.0, 3.0, 3.0]]), 0)
    yield call("mode", given([[2, 2, 1], [1, 3, 3]], "int64"), -1, True)


def _searching() -> Iterator[Case]:
    edges = given([1.0, 3.0, 5.0, 7.0], grad=False)
    values = given([[0.0, 1.0, 4.0], [7.0, 8.0, 5.0]], grad=False)
    for right in (False, True):
        yield call("searchsorted", edges, values, right=right)
        yield call("bucketize", values, edges, right=right)
    yield call("searchsorted", edges, values, True)
    yield call("searchsorted", given([[1, 3], [2, 4]], "int64"), given([[2, 3], [2, 5]], "int64"))
    yield call("bucketize", given(4.0, grad=False), edges)
    yield call("histogram", t(8, grad=False), 4, -2, 2)
    for density in (False, True):
        yield call("histogram", t(8, grad=False), 4, -2, 2, t(8, low=0, grad=False), density)
        yield call("histogram", t(8, grad=False), 3, density=density)
    yield call("bincount", given([0, 2, 2], "int64"))
    yield call("isin", given([1, 2, 3], "int64"), given([2, 5], "int64"))
    yield call("shard_index", given([[1], [5]], "int64"), 8, 2, 0)

"""Sparse tensors with their elements elsewhere: transposed, reshaped, cut out, summed along axes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.sparse.patterns import distinct, keys_of, positions_of
from argosy.sparse.tensors import SparseCooTensor, SparseCsrTensor, SparseTensor, as_sparse, scatter_sum
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["reshape", "slice", "sum", "transpose"]


@validate_call
def transpose(x: SparseTensor, perm: Sequence[int], name: str | None = None) -> SparseTensor:
    """``x`` with its axes in the order ``perm``; dense axes stay behind the sparse ones."""
    as_sparse("transpose", x)
    order = [_axis("transpose", "perm", p, x.ndim) for p in perm]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"transpose(): perm should name each of {x.ndim} axes once, got {list(perm)}")
    if sorted(order[: x.sparse_dim()]) != list(range(x.sparse_dim())):
        raise ValueError(f"transpose(): perm {list(perm)} mixes the {x.sparse_dim()} sparse axes with the dense ones")

    def transpose_coo(found: SparseCooTensor) -> SparseCooTensor:
        count = found.sparse_dim()
        indices = op("stack")([found.indices()[p] for p in order[:count]])
        values = op("transpose")(found.values(), [0, *(p - count + 1 for p in order[count:])])
        return SparseCooTensor(indices, values, [x.shape[p] for p in order])

    return _change_coordinates(x, transpose_coo)


@validate_call
def reshape(x: SparseTensor, shape: Sequence[int], name: str | None = None) -> SparseTensor:
    """``x`` with other sparse axes of as many positions: -1 stands for what is left over, 0 for the size that x has
    there. Dense axes stay as they are.
    """
    as_sparse("reshape", x)
    given = [int(x.shape[i]) if n == 0 and i < x.ndim else int(n) for i, n in enumerate(shape)]
    if given.count(-1) == 1:
        known = -math.prod(given)
        given[given.index(-1)] = x.size // known if known else 0
    dense = [int(n) for n in x.shape[x.sparse_dim() :]]
    count = len(given) - len(dense)
    if min(given, default=0) < 0 or math.prod(given) != x.size or count < 1 or given[count:] != dense:
        kept = f" with the dense axes {dense} last" if dense else ""
        raise ValueError(f"reshape(): {list(x.shape)} does not become {list(shape)}; as many elements are needed{kept}")

    def reshape_coo(found: SparseCooTensor) -> SparseCooTensor:
        places, rows = found.places(), []
        for size in given[count - 1 :: -1]:
            rows.append((places % max(size, 1)).cast(found.indices().dtype.name))
            places = places // max(size, 1)
        return SparseCooTensor(op("stack")(rows[::-1]), found.values(), given, found.is_coalesced())

    return _change_coordinates(x, reshape_coo)


@validate_call
def slice(x: SparseTensor, axes: Any, starts: Any, ends: Any, name: str | None = None) -> SparseTensor:
    """``x[starts[i]:ends[i]]`` along each axis ``axes[i]``; ends beyond it mean its end, negative ones count back.

    Which values stay is found from the indices, which are read.
    """
    as_sparse("slice", x)
    wanted, first, last = (_numbers(n) for n in (axes, starts, ends))
    if not len(wanted) == len(first) == len(last):
        counts = f"{len(wanted)}, {len(first)} and {len(last)}"
        raise ValueError(f"slice(): axes, starts and ends should be equally many, got {counts}")
    spans = [range(n) for n in x.shape]
    for axis, start, end in zip(wanted, first, last, strict=True):
        at = _axis("slice", "axes", axis, x.ndim)
        spans[at] = range(*builtins.slice(start, end).indices(x.shape[at])[:2])

    def cut(found: SparseCooTensor) -> SparseCooTensor:
        indices, count = found.indices().numpy(), found.sparse_dim()
        low = np.array([s.start for s in spans[:count]], indices.dtype)[:, None]
        high = np.array([max(s.stop, s.start) for s in spans[:count]], indices.dtype)[:, None]
        kept = np.flatnonzero(((indices >= low) & (indices < high)).all(0))
        values = op("gather")(found.values(), Tensor(kept), 0)
        for axis, span in enumerate(spans[count:]):
            values = op("slice")(values, [axis + 1], [span.start], [max(span.stop, span.start)])
        return SparseCooTensor(Tensor(indices[:, kept] - low), values, [len(s) for s in spans], found.is_coalesced())

    return _change_coordinates(x, cut)


@validate_call
def sum(
    x: SparseTensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None
) -> SparseTensor:
    """Sums along ``axis``, one or several, or of all values (of shape [1], or [1, 1] for a CSR tensor).

    Integers and booleans add up to int64 unless ``dtype`` says otherwise. A CSR tensor stays one: axes of it that would
    leave fewer than two are kept as 1. Positions where nothing is added are not stored.
    """
    as_sparse("sum", x)
    numbers = range(x.ndim) if axis is None else _numbers(axis)
    axes = sorted({_axis("sum", "axis", n, x.ndim) for n in numbers})
    kind = dtype if dtype is not None else "int64" if x.dtype.kind in "iub" else x.dtype
    compressed = isinstance(x, SparseCsrTensor)
    kept = keepdim or (compressed and x.ndim - len(axes) < 2)
    found = _sum_values(x.to_sparse_coo(), axes, kind, kept)
    if compressed and axis is None:
        return reshape(found, [1, 1]).to_sparse_csr()
    return found.to_sparse_csr() if compressed else found


def _sum_values(x: SparseCooTensor, axes: list[int], dtype: Any, keepdim: bool) -> SparseCooTensor:
    count = x.sparse_dim()
    values = x.values().astype(dtype)
    inner = [a - count + 1 for a in axes if a >= count]
    if inner:
        values = values.sum(inner, keepdim=keepdim)
    rest = [i for i in range(count) if i not in axes]
    sizes = [x.shape[i] for i in rest]
    indices = x.indices().numpy()
    keys, places = distinct(keys_of(indices[rest], sizes))
    total = scatter_sum(values, Tensor(places), len(keys))
    if keepdim:
        at = np.zeros((count, len(keys)), indices.dtype)
        at[rest] = positions_of(keys, sizes, indices.dtype) if rest else 0
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        return SparseCooTensor(Tensor(at), total, shape, True)
    if rest:
        at = positions_of(keys, sizes, indices.dtype)
        return SparseCooTensor(Tensor(at), total, [*sizes, *values.shape[1:]], True)
    whole = values.sum(0)  # no sparse axis is left: the first dense one becomes sparse
    whole = whole if whole.shape else whole.reshape([1])
    return SparseCooTensor(Tensor(np.arange(whole.shape[0], dtype=indices.dtype)[None]), whole, whole.shape, True)


def _change_coordinates(x: Any, change: Callable[[SparseCooTensor], SparseCooTensor]) -> SparseTensor:
    """What ``change`` makes of the coordinates, compressed again where those of ``x`` were."""
    found = change(x.to_sparse_coo())
    return found.to_sparse_csr() if isinstance(x, SparseCsrTensor) else found


def _axis(owner: str, name: str, axis: Any, ndim: int) -> int:
    if not -ndim <= int(axis) < ndim:
        raise ValueError(f"{owner}(): {name} should be from {-ndim} to {ndim - 1}, got {axis}")
    return int(axis) % ndim


def _numbers(given: Any) -> list[int]:
    """One number, several of them, or a tensor of them."""
    if isinstance(given, Tensor):
        return [int(n) for n in given.numpy().ravel()]
    return [int(n) for n in given] if isinstance(given, (list, tuple)) else [int(given)]

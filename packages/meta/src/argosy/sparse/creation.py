"""Sparse tensors from indices and values, and from dense tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.sparse.patterns import positions_of
from argosy.sparse.tensors import SparseCooTensor, SparseCsrTensor, SparseTensor, as_sparse
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["mask_as", "sparse_coo_tensor", "sparse_csr_tensor", "to_sparse_coo", "to_sparse_csr"]


@validate_call
def sparse_coo_tensor(
    indices: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> SparseCooTensor:
    """A sparse tensor of ``values`` [nnz, *dense axes] at the coordinates ``indices`` [sparse axes, nnz].

    shape: by default the least that holds all of them. ``stop_gradient`` counts for ``values``, too, where they are a
    tensor. Raises ValueError for coordinates outside of the shape and where numbers of elements or axes do not fit,
    TypeError for indices that are no signed integers.
    """
    this = "sparse_coo_tensor"
    at, held = _indices(this, "indices", indices, place), _values(values, dtype, place, stop_gradient)
    if len(at.shape) != 2:
        raise ValueError(f"{this}(): argument 'indices' must be 2-D, got the shape {list(at.shape)}")
    if not held.shape or at.shape[1] != held.shape[0]:
        raise ValueError(f"{this}(): {at.shape[1]} indices do not fit values of shape {list(held.shape)}")
    given = _least_shape(at, held) if shape is None else [int(n) for n in shape]
    if len(given) != at.shape[0] + len(held.shape) - 1:
        axes = f"{at.shape[0]} of the indices and {len(held.shape) - 1} of the values"
        raise ValueError(f"{this}(): shape {given} should have as many axes as there are: {axes}")
    if not at.payload.is_traced:  # of a captured program the values are not known yet
        _check_positions(this, at, held, given)
    return SparseCooTensor(at, held, given)


@validate_call
def sparse_csr_tensor(
    crows: Any,
    cols: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> SparseCsrTensor:
    """A matrix, or a batch of them, of ``values`` [nnz] in rows: ``crows`` points to where each begins, ``cols`` [nnz]
    says the columns; see :class:`SparseCsrTensor` for a batch.

    shape: two or three sizes; by default as many columns as there must be, and as many matrices as ``crows`` falls back
    to 0. Raises ValueError for pointers, columns and values that do not fit each other and the shape, TypeError for
    indices that are no signed integers.
    """
    this = "sparse_csr_tensor"
    pointers, at = _indices(this, "crows", crows, place), _indices(this, "cols", cols, place)
    held = _values(values, dtype, place, stop_gradient)
    if not len(pointers.shape) == len(at.shape) == len(held.shape) == 1:
        found = ", ".join(str(list(t.shape)) for t in (pointers, at, held))
        raise ValueError(f"{this}(): crows, cols and values must be 1-D, got the shapes {found}")
    if at.shape[0] != held.shape[0]:
        raise ValueError(f"{this}(): {at.shape[0]} cols do not fit {held.shape[0]} values")
    given = _infer_shape(this, pointers.numpy(), at.numpy()) if shape is None else [int(n) for n in shape]
    if not (pointers.payload.is_traced or at.payload.is_traced):
        _check_rows(this, pointers.numpy(), at.numpy(), given)
    return SparseCsrTensor(pointers, at, held, given)


def _least_shape(indices: Any, values: Any) -> list[int]:
    """The least shape that holds these positions."""
    return [int(n) for n in indices.numpy().max(1, initial=-1) + 1] + [int(n) for n in values.shape[1:]]


def _check_positions(owner: str, indices: Any, values: Any, shape: list[int]) -> None:
    least, count = _least_shape(indices, values), indices.shape[0]
    fits = all(n >= end for n, end in zip(shape, least, strict=True)) and shape[count:] == least[count:]
    if not fits or (indices.size and indices.numpy().min() < 0):
        raise ValueError(f"{owner}(): the indices need a shape of at least {least} and none below 0, got {shape}")


def _infer_shape(owner: str, crows: Any, cols: Any) -> list[int]:
    batch = int((crows[:-1] > crows[1:]).sum()) + 1
    if not crows.size or crows.size % batch:
        raise ValueError(f"{owner}(): crows of {crows.size} numbers do not split into {batch} matrices; give the shape")
    sizes = [crows.size // batch - 1, int(cols.max(initial=-1)) + 1]
    return sizes if batch == 1 else [batch, *sizes]


def _check_rows(owner: str, crows: Any, cols: Any, shape: list[int]) -> None:
    if len(shape) not in (2, 3):
        raise ValueError(f"{owner}(): shape should have two or three sizes, got {shape}")
    batch = shape[0] if len(shape) == 3 else 1
    if crows.size != batch * (shape[-2] + 1):
        raise ValueError(f"{owner}(): crows of a shape {shape} should be {batch * (shape[-2] + 1)}, got {crows.size}")
    rows = crows.reshape(batch, -1)
    if (rows[:, 0] != 0).any() or (np.diff(rows) < 0).any() or rows[:, -1].sum() != cols.size:
        raise ValueError(f"{owner}(): crows should rise from 0 to the number of values ({cols.size}), got {rows}")
    if cols.size and not 0 <= cols.min() <= cols.max() < shape[-1]:
        raise ValueError(f"{owner}(): cols should lie in [0, {shape[-1]}), got {cols.min()} to {cols.max()}")


def _indices(owner: str, name: str, given: Any, place: Any) -> Any:
    made = given if isinstance(given, Tensor) else Tensor(given, place=place)
    if made.dtype.kind != "i":
        raise TypeError(f"{owner}(): argument {name!r} must hold signed integers, got {made.dtype.name}")
    return made


def _values(given: Any, dtype: Any, place: Any, stop_gradient: bool) -> Any:
    made: Any = given if isinstance(given, Tensor) else Tensor(given, dtype, place)
    if dtype is not None:
        made = made.astype(dtype)
    if stop_gradient:
        return made.detach()
    made.stop_gradient = False
    return made


def to_sparse_coo(self: Any, sparse_dim: int) -> SparseCooTensor:
    """The elements of a dense tensor that are not 0, with their coordinates in the first ``sparse_dim`` axes.

    The values have the other axes: where one of their elements is not 0, all are kept.
    """
    if not 0 < sparse_dim <= self.ndim:
        raise ValueError(f"to_sparse_coo(): sparse_dim should be from 1 to {self.ndim}, got {sparse_dim}")
    kept = self.numpy() != 0
    sizes = [int(n) for n in self.shape]
    keys = np.flatnonzero(kept.reshape(*sizes[:sparse_dim], -1).any(-1))
    rows = self.reshape([int(np.prod(sizes[:sparse_dim])), *sizes[sparse_dim:]])
    values = op("gather")(rows, Tensor(keys), 0)
    return SparseCooTensor(Tensor(positions_of(keys, sizes[:sparse_dim])), values, sizes, True)


def to_sparse_csr(self: Any) -> SparseCsrTensor:
    """The elements of a dense matrix, or of a batch of them, that are not 0, by rows."""
    if self.ndim not in (2, 3):
        raise ValueError(f"to_sparse_csr() takes a tensor of 2 or 3 axes, got the shape {list(self.shape)}")
    return to_sparse_coo(self, self.ndim).to_sparse_csr()


@validate_call
def mask_as(x: Tensor, mask: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements of the dense ``x`` at the positions of the sparse ``mask``, which has its shape."""
    held = as_sparse("mask_as", mask, "mask")
    if isinstance(x, SparseTensor):
        raise TypeError("mask_as(): argument 'x' must be a dense Tensor, got a sparse one")
    if list(x.shape) != list(held.shape):
        raise ValueError(f"mask_as(): x has the shape {list(x.shape)}, mask {list(held.shape)}")
    coordinates = held.to_sparse_coo()
    rows = op("reshape")(x, [-1, *held.shape[coordinates.sparse_dim() :]])
    made: SparseTensor = held._with_values(op("gather")(rows, coordinates.places(), 0))
    return made

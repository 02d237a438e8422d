"""Sums, differences, products and quotients of two sparse tensors of one kind and shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.sparse.patterns import join_keys, positions_of
from argosy.sparse.tensors import SparseCooTensor, SparseCsrTensor, SparseTensor, as_sparse, scatter_sum
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["add", "divide", "is_same_shape", "multiply", "subtract"]

Both = Callable[[Any, Any], Any]
OnCoordinates = Callable[[SparseCooTensor, SparseCooTensor], SparseCooTensor]


@validate_call
def add(x: SparseTensor, y: SparseTensor, name: str | None = None) -> SparseTensor:
    """``x + y`` at the positions of either. Both are COO or both CSR, of one shape and as many sparse axes."""
    return _match("add", x, y, _at_either(op("add")))


@validate_call
def subtract(x: SparseTensor, y: SparseTensor, name: str | None = None) -> SparseTensor:
    """``x - y`` at the positions of either. Both are COO or both CSR, of one shape and as many sparse axes."""
    return _match("subtract", x, y, _at_either(op("subtract")))


@validate_call
def multiply(x: SparseTensor, y: Any, name: str | None = None) -> SparseTensor:
    """``x * y`` at the positions of either, with zeros where one has nothing, as Paddle keeps them; ``y`` may be a
    number. Both are COO or both CSR, of one shape and as many sparse axes.
    """
    if isinstance(y, (int, float)):
        return as_sparse("multiply", x)._with_values(x.values() * y)  # type: ignore[no-any-return]
    return _match("multiply", x, y, _at_either(op("multiply")))


@validate_call
def divide(x: SparseTensor, y: Any, name: str | None = None) -> SparseTensor:
    """``x / y``; ``y`` may be a number. Of two sparse tensors at all positions: where both have nothing it is NaN."""
    if isinstance(y, (int, float)):
        return as_sparse("divide", x)._with_values(x.values() / y)  # type: ignore[no-any-return]
    return _match("divide", x, y, _quotient)


@validate_call
def is_same_shape(x: Any, y: Any) -> bool:
    """Whether two tensors, sparse or dense, have the same shape."""
    return list(x.shape) == list(y.shape)


def _match(owner: str, x: Any, y: Any, apply: OnCoordinates) -> SparseTensor:
    as_sparse(owner, x)
    as_sparse(owner, y, "y")
    if type(x) is not type(y):
        kinds = f"{type(x).__name__} and {type(y).__name__}"
        raise TypeError(f"{owner}(): x and y must both be COO or both be CSR, got {kinds}")
    if list(x.shape) != list(y.shape) or x.sparse_dim() != y.sparse_dim():
        kinds = " and ".join(f"{list(t.shape)} with {t.sparse_dim()} sparse axes" for t in (x, y))
        raise ValueError(f"{owner}(): x and y must have one shape and as many sparse axes, got {kinds}")
    found = apply(x.to_sparse_coo().coalesce(), y.to_sparse_coo().coalesce())
    return found.to_sparse_csr() if isinstance(x, SparseCsrTensor) else found


def _at_either(apply: Both) -> OnCoordinates:
    def combine(x: SparseCooTensor, y: SparseCooTensor) -> SparseCooTensor:
        first, second = x.keys(), y.keys()
        if np.array_equal(first, second):
            return x._with_values(apply(x.values(), y.values()))
        union, here, there = join_keys(first, second)
        values = [scatter_sum(t.values(), Tensor(at), len(union)) for t, at in ((x, here), (y, there))]
        indices = positions_of(union, x.sparse_shape, x.indices().numpy().dtype)
        return SparseCooTensor(Tensor(indices), apply(*values), x.shape, True)

    return combine


def _quotient(x: SparseCooTensor, y: SparseCooTensor) -> SparseCooTensor:
    count = math.prod(x.sparse_shape)
    rows = [t.to_dense().reshape([count, *x.shape[x.sparse_dim() :]]) for t in (x, y)]
    indices = positions_of(np.arange(count), x.sparse_shape, x.indices().numpy().dtype)
    return SparseCooTensor(Tensor(indices), op("divide")(*rows), x.shape, True)

"""Functions of each value by itself, and conversions: the positions stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from argosy.argument_checks import validate_call
from argosy.sparse.tensors import SparseCooTensor, SparseCsrTensor, SparseTensor, as_sparse
from argosy_phi_ops.declare.operator import get_operator as op

__all__ = [
    "abs", "asin", "asinh", "atan", "atanh", "cast", "coalesce", "deg2rad", "expm1", "isnan", "log1p", "neg", "pow",
    "rad2deg", "sin", "sinh", "sqrt", "square", "tan", "tanh",
]  # fmt: skip

S = TypeVar("S", bound=SparseTensor)


def _elementwise(name: str) -> Callable[..., Any]:
    """The operator ``name``, which maps 0 to 0, of the values of a sparse tensor."""

    def function(x: S, name: str | None = None) -> S:
        return as_sparse(title, x)._with_values(op(title)(x.values()))  # type: ignore[no-any-return]

    title = function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of each value of the sparse tensor ``x``; what is not stored stays 0."
    return validate_call(function)


abs = _elementwise("abs")
asin = _elementwise("asin")
asinh = _elementwise("asinh")
atan = _elementwise("atan")
atanh = _elementwise("atanh")
deg2rad = _elementwise("deg2rad")
expm1 = _elementwise("expm1")
isnan = _elementwise("isnan")
log1p = _elementwise("log1p")
neg = _elementwise("neg")
rad2deg = _elementwise("rad2deg")
sin = _elementwise("sin")
sinh = _elementwise("sinh")
sqrt = _elementwise("sqrt")
square = _elementwise("square")
tan = _elementwise("tan")
tanh = _elementwise("tanh")


@validate_call
def pow(x: S, factor: float, name: str | None = None) -> S:
    """Each value of the sparse tensor ``x`` to the power ``factor``; what is not stored stays 0."""
    return as_sparse("pow", x)._with_values(op("pow")(x.values(), factor))  # type: ignore[no-any-return]


@validate_call
def cast(x: SparseTensor, index_dtype: Any = None, value_dtype: Any = None, name: str | None = None) -> SparseTensor:
    """The sparse tensor ``x`` with indices, or values, or both of these dtypes."""
    as_sparse("cast", x)
    values = x.values() if value_dtype is None else x.values().astype(value_dtype)

    def convert_indices(indices: Any) -> Any:
        return indices if index_dtype is None else indices.astype(index_dtype)

    if isinstance(x, SparseCsrTensor):
        return SparseCsrTensor(convert_indices(x.crows()), convert_indices(x.cols()), values, x.shape)
    found = x.to_sparse_coo()
    return SparseCooTensor(convert_indices(found.indices()), values, x.shape, found.is_coalesced())


@validate_call
def coalesce(x: SparseCooTensor, name: str | None = None) -> SparseCooTensor:
    """``x`` with each coordinate once, in row-major order; values at one position are added."""
    if not isinstance(x, SparseCooTensor):
        raise TypeError(f"coalesce(): argument 'x' must be a SparseCooTensor, got {type(x).__name__}")
    return x.coalesce()

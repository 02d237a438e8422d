"""Functions of the array API standard that make arrays."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from argosy.array_api.dtypes import check_device
from argosy.array_api.promotion import Scalar, apply, convert, promote_operands
from argosy_tensorcore import interchange
from argosy_tensorcore.dtype import DType, as_dtype, default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = builtins.int | Sequence[builtins.int]


def _shape(shape: Shape) -> list[builtins.int]:
    return [shape] if isinstance(shape, builtins.int) else list(shape)


def _default(value: Any) -> DType:
    """The dtype that Python numbers become."""
    if isinstance(value, builtins.bool):
        return as_dtype("bool")
    if isinstance(value, builtins.int):
        return as_dtype("int64")
    if isinstance(value, builtins.complex):
        return as_dtype("complex128" if default_dtype().name == "float64" else "complex64")
    return default_dtype()


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: object = None, copy: builtins.bool | None = None
) -> Tensor:
    """An array of a number, nested sequences, an array or anything with a buffer, or ``obj`` itself.

    With ``copy=False`` memory is shared; raises ValueError where it cannot be. Without ``copy`` only arrays of argosy
    are shared.
    """
    check_device("asarray", device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        found = convert(obj, obj.dtype if wanted is None else wanted)
        if copy is False and found is not obj:
            raise ValueError(f"asarray(): {obj.dtype.name} does not become {found.dtype.name} without a copy")
        return apply("assign", found) if copy and found is obj else found
    if copy is False:
        return _share_memory(obj, wanted)
    return Tensor(_as_buffer(obj), wanted)


def _as_buffer(obj: Any) -> Any:
    """What Tensor takes: an ndarray of what offers a buffer or itself as one, ``obj`` where it does not."""
    import numpy as np

    if isinstance(obj, (builtins.bool, builtins.int, builtins.float, builtins.complex, list, tuple)):
        return obj
    return np.asarray(obj)


def _share_memory(obj: Any, dtype: DType | None) -> Tensor:
    import numpy as np

    try:
        array = np.asarray(obj, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"asarray(): a {type(obj).__name__} does not become an array without a copy") from error
    found = interchange.from_numpy(array)
    if dtype is not None and found.dtype is not dtype:
        raise ValueError(f"asarray(): {found.dtype.name} does not become {dtype.name} without a copy")
    return found


def from_dlpack(x: Any, /, *, device: object = None, copy: builtins.bool | None = None) -> Tensor:
    """An array that shares the memory of anything with ``__dlpack__``; with ``copy``, memory of its own."""
    check_device("from_dlpack", device)
    found = interchange.from_dlpack(x)
    return Tensor(found) if copy else found


def arange(
    start: builtins.float,
    /,
    stop: builtins.float | None = None,
    step: builtins.float = 1,
    *,
    dtype: DType | None = None,
    device: object = None,
) -> Tensor:
    """``start, start + step, ...`` up to ``stop``; from 0 up to ``start`` without that."""
    check_device("arange", device)
    low, high = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(bound, builtins.int) for bound in (low, high, step))
    wanted = as_dtype(dtype) if dtype is not None else as_dtype("int64") if whole else default_dtype()
    found: Tensor = apply("arange", low, high, step, dtype=wanted.name)
    return found


def linspace(
    start: builtins.float | builtins.complex,
    stop: builtins.float | builtins.complex,
    /,
    num: builtins.int,
    *,
    dtype: DType | None = None,
    device: object = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, that one included with ``endpoint``."""
    check_device("linspace", device)
    if isinstance(start, builtins.complex) or isinstance(stop, builtins.complex):
        return _complex_line(complex(start), complex(stop), num, dtype, endpoint)
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    if wanted.kind == "c":
        return _complex_line(complex(start), complex(stop), num, dtype, endpoint)
    if endpoint:
        return apply("linspace", start, stop, num, dtype=wanted.name)  # type: ignore[no-any-return]
    return apply("linspace", start, stop, num + 1, dtype=wanted.name)[:-1]  # type: ignore[no-any-return]


def _complex_line(
    start: builtins.complex, stop: builtins.complex, num: builtins.int, dtype: DType | None, endpoint: builtins.bool
) -> Tensor:
    wanted = _default(start) if dtype is None else as_dtype(dtype)
    part = as_dtype("float64" if wanted.itemsize == 16 else "float32")
    parts = [linspace(a, b, num, dtype=part, endpoint=endpoint)
             for a, b in ((start.real, stop.real), (start.imag, stop.imag))]  # fmt: skip
    return apply("complex", *parts)  # type: ignore[no-any-return]


def full(shape: Shape, fill_value: Scalar, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array filled with one value."""
    check_device("full", device)
    wanted = _default(fill_value) if dtype is None else as_dtype(dtype)
    return _fill(_shape(shape), fill_value, wanted)


def _fill(shape: Sequence[builtins.int], value: Scalar, dtype: DType) -> Tensor:
    # By way of a tensor: as an attribute of the operator an integer beyond 2**53, or a complex number, would be lost.
    return apply("assign", apply("broadcast_to", Tensor(value, dtype), list(shape)))  # type: ignore[no-any-return]


def full_like(x: Tensor, /, fill_value: Scalar, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array of the shape (and dtype) of ``x`` filled with one value."""
    check_device("full_like", device)
    return _fill(x.shape, fill_value, x.dtype if dtype is None else as_dtype(dtype))


def empty(shape: Shape, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array of any values."""
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array of any values of the shape (and dtype) of ``x``."""
    return zeros_like(x, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array of zeros."""
    check_device("zeros", device)
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    return apply("zeros", _shape(shape), dtype=wanted.name)  # type: ignore[no-any-return]


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """Zeros in the shape (and dtype) of ``x``."""
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """An array of ones."""
    check_device("ones", device)
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    return apply("ones", _shape(shape), dtype=wanted.name)  # type: ignore[no-any-return]


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: object = None) -> Tensor:
    """Ones in the shape (and dtype) of ``x``."""
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def eye(
    n_rows: builtins.int,
    n_cols: builtins.int | None = None,
    /,
    *,
    k: builtins.int = 0,
    dtype: DType | None = None,
    device: object = None,
) -> Tensor:
    """A matrix with ones on the diagonal ``k`` and zeros elsewhere."""
    check_device("eye", device)
    columns = n_rows if n_cols is None else n_cols
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    rows, cols = apply("arange", n_rows).unsqueeze(1), apply("arange", columns)
    shift = max(-n_rows, min(k, columns))  # further off there is no diagonal
    return convert(apply("equal", cols, rows + shift), wanted)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Vectors spread over the grid that they span; with "ij" result i varies along axis i, with "xy" the first two
    are exchanged. Raises ValueError for another ``indexing``."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): argument 'indexing' should be 'xy' or 'ij', got {indexing!r}")
    if not arrays:
        return ()
    found = apply("meshgrid", list(promote_operands("meshgrid", *arrays)), indexing="ij")
    if indexing == "xy" and len(arrays) > 1:
        found = _meshgrid_by_columns(arrays)
    return tuple(apply("assign", x) for x in found)


def _meshgrid_by_columns(arrays: Sequence[Tensor]) -> list[Tensor]:
    first, second, *rest = promote_operands("meshgrid", *arrays)
    grid = apply("meshgrid", [second, first, *rest], indexing="ij")
    return [grid[1], grid[0], *grid[2:]]


def tril(x: Tensor, /, *, k: builtins.int = 0) -> Tensor:
    """The lower triangles of matrices, up to the diagonal ``k``."""
    return apply("tril", x, k)  # type: ignore[no-any-return]


def triu(x: Tensor, /, *, k: builtins.int = 0) -> Tensor:
    """The upper triangles of matrices, from the diagonal ``k`` on."""
    return apply("triu", x, k)  # type: ignore[no-any-return]

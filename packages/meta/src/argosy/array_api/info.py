"""What the array API standard asks of this implementation: devices, dtypes, capabilities."""

from __future__ import annotations

import builtins

from argosy.array_api.dtypes import check_device, dtypes_of_kind
from argosy_tensorcore.dtype import DType, as_dtype, default_dtype

__all__ = ["Info"]


class Info:
    """Answers about the namespace, as ``__array_namespace_info__()`` gives them."""

    def capabilities(self) -> dict[str, builtins.bool | builtins.int | None]:
        """Boolean indexing and shapes that depend on data are supported (eagerly); the number of axes is at most 64."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where new arrays are."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """Where arrays can be."""
        return ("cpu",)

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:
        """What Python numbers become, and the dtype of indices."""
        check_device("default_dtypes", device)
        wide = default_dtype().name == "float64"
        return {
            "real floating": default_dtype(),
            "complex floating": as_dtype("complex128" if wide else "complex64"),
            "integral": as_dtype("int64"),
            "indexing": as_dtype("int64"),
        }

    def dtypes(self, *, device: object = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes by name; of one kind or several if given, as ``isdtype`` names them."""
        check_device("dtypes", device)
        return dtypes_of_kind(kind)

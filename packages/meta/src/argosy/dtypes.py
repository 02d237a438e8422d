"""The default floating type."""

from __future__ import annotations

from argosy_tensorcore.dtype import default_dtype, set_default_dtype

__all__ = ["get_default_dtype", "set_default_dtype"]


def get_default_dtype() -> str:
    """The name of the type that Python floats become in tensors: ``"float32"`` unless changed."""
    return default_dtype().name

"""The default floating type."""

from __future__ import annotations

from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.dtype import set_default_dtype as _set_default

__all__ = ["get_default_dtype", "set_default_dtype"]


def get_default_dtype() -> str:
    """The name of the type that Python floats become in tensors: ``"float32"`` unless changed."""
    return default_dtype().name


def set_default_dtype(d: object) -> None:
    """Make ``d``, a floating type, what Python floats become. Raises ``TypeError`` for other types."""
    _set_default(d)

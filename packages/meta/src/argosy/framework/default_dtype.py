"""The default floating type."""

from __future__ import annotations

from argosy_phi_ops.eager.default_dtype import set_default_dtype as _set_default
from argosy_tensorcore.dtype import default_dtype

__all__ = ["NoDType", "get_default_dtype", "pstring", "raw", "set_default_dtype"]


class NoDType:
    """A name of Paddle's among dtypes that no tensor can have; where a dtype is wanted it is refused."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"paddle.{self.name}"


pstring = NoDType("pstring")
"""The dtype of Paddle's tensors of strings."""
raw = NoDType("raw")
"""The dtype that is not defined."""


def get_default_dtype() -> str:
    """The name of the type that Python floats become in tensors: ``"float32"`` unless changed."""
    return default_dtype().name


def set_default_dtype(d: object) -> None:
    """Make ``d``, a floating type, what Python floats become: on the calling rank, where ranks are threads of a
    process. Raises ``TypeError`` for other types."""
    _set_default(d)

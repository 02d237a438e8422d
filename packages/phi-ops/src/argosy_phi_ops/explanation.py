"""What a user is told when an operator fails with an error of Python's or numpy's insides.

Looked at only then, so that calls that work pay nothing: which attribute does not fit its annotation, and what came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from argosy_phi_ops.attribute_types import fits, spelled
from argosy_phi_ops.errors import FOREIGN, OperatorError
from argosy_phi_ops.memory import OperatorMemoryError
from argosy_phi_ops.signature import OperatorTypeError, normalise_attribute, unfit
from argosy_tensorcore.dtype import as_dtype

__all__ = ["explained"]


class OperatorIndexError(OperatorError, IndexError):
    """An index outside of what an operator was given."""


class _Function(Protocol):
    """An operator or a composed function."""

    name: str
    body: Any


def explained(
    op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any], error: Exception
) -> OperatorError | None:
    """An error for users in the place of ``error``; None where that is one already, or a user's own."""
    if "." in op.name or str(error).startswith((f"{op.name}:", f"{op.name}(")) or not _is_inner(error):
        return None
    notes = op.body.__annotations__
    for name, value in attributes.items():
        value, note = normalise_attribute(value), notes.get(name, "")
        wanted = _dtype_wanted(name, value) if fits(value, note) else spelled(note)
        if wanted:
            return unfit(op.name, name, wanted, value)
    if type(error) is NotImplementedError:
        return None
    return _kind(error)(f"{op.name}: {error or type(error).__name__} [{_described(operands, attributes)}]")


def _is_inner(error: Exception) -> bool:
    """Whether ``error`` is of Python, numpy or the IR: those of argosy's other classes are for users already."""
    kind = type(error)
    return kind in FOREIGN or kind.__module__.startswith(
        ("numpy.exceptions", "numpy._core", "numpy.linalg", "argosy_pir")
    )


def _kind(error: Exception) -> type[OperatorError]:
    kinds = {TypeError: OperatorTypeError, IndexError: OperatorIndexError, MemoryError: OperatorMemoryError}
    return next((mine for theirs, mine in kinds.items() if isinstance(error, theirs)), OperatorError)


def _dtype_wanted(name: str, value: Any) -> str:
    """What an attribute that names a dtype should be, where it names none."""
    if not name.endswith("dtype") or not isinstance(value, str):
        return ""
    try:
        as_dtype(value)
    except TypeError:
        return "the name of a dtype"
    return ""


def _described(operands: Sequence[Any], attributes: Mapping[str, Any]) -> str:
    named = [f"{k}={str(v)[:60]}" for k, v in attributes.items() if k != "segments"]
    return "operands: " + ", ".join(map(_shown, operands)) + ("; " + ", ".join(named) if named else "")


def _shown(x: Any) -> str:
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_shown, x[:4]))}{', ...' if len(x) > 4 else ''}]"
    if hasattr(x, "shape") and hasattr(x.dtype, "name"):
        return f"{x.dtype.name} {list(x.shape)}"
    return repr(x)[:40]

"""What a user is told when an operator fails with an error of Python's or numpy's insides.

Looked at only then, so that calls that work pay nothing: which attribute does not fit its annotation, and what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.operator import Operator
from argosy_phi_ops.signature import OperatorTypeError

__all__ = ["FOREIGN", "explained"]

FOREIGN = (
    TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError, ZeroDivisionError, UnboundLocalError,
)  # fmt: skip
"""The classes that :func:`explained` looks at."""

_NUMBERS: dict[str, Any] = {"int": int, "float": (int, float), "complex": (int, float, complex)}
_BUILTIN = {**_NUMBERS, "bool": bool, "str": str}


class OperatorIndexError(OperatorError, IndexError):
    """An index outside of what an operator was given."""


def explained(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any], error: Exception
) -> OperatorError | None:
    """An error for users in the place of ``error``; None where that is one already, or a user's own."""
    custom = "." in op.name
    inner = type(error).__module__.startswith(("numpy.exceptions", "numpy._core", "argosy_pir"))
    if custom or op.name in str(error) or not (type(error) in FOREIGN or inner):
        return None
    notes = op.body.__annotations__
    for name, value in attributes.items():
        if name in notes and not _fits(value, notes[name]):
            shown = repr(value)
            return OperatorTypeError(
                f"{op.name}(): argument {name!r} should be {notes[name]}, got {type(value).__name__} {shown[:60]}"
            )
    kind: type[OperatorError] = OperatorError
    if isinstance(error, TypeError):
        kind = OperatorTypeError
    elif isinstance(error, IndexError):
        kind = OperatorIndexError
    return kind(f"{op.name}: {error or type(error).__name__} [{_described(op, operands, attributes)}]")


def _fits(value: Any, annotation: str) -> bool:
    """Whether plain data is of the annotated kind; what the annotation does not tell fits."""
    if hasattr(value, "evaluate"):  # a symbolic size
        return True
    kinds = annotation.replace("Axes", "int | Sequence[int] | None").split(" | ")
    return any(_is(value, kind) for kind in kinds)


def _is(value: Any, kind: str) -> bool:
    if kind == "None":
        return value is None
    if kind.startswith(("Sequence", "tuple", "list")):
        inner = kind.partition("[")[2].rstrip("]").partition(",")[0]
        return isinstance(value, (tuple, list)) and (not inner or all(_fits(item, inner) for item in value))
    known = _BUILTIN.get(kind)
    return known is None or isinstance(value, known)


def _described(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> str:
    shown = [
        f"{x.dtype.name} {list(x.shape)}" if hasattr(x, "shape") and hasattr(x.dtype, "name") else repr(x)[:40]
        for x in operands
    ]
    named = [f"{k}={str(v)[:60]}" for k, v in attributes.items() if k != "segments"]
    return "operands: " + ", ".join(shown) + ("; " + ", ".join(named) if named else "")

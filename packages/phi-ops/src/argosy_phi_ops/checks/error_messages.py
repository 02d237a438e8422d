"""What a user is told when an operator fails: with errors of Python's or numpy's insides, which attribute does not fit
its annotation; with all of them, what came, by argument. Looked at only then, so that calls that work pay nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from argosy_phi_ops.checks.memory_limits import OperatorMemoryError
from argosy_phi_ops.declare.attribute_types import fits, spell
from argosy_phi_ops.declare.signature import OperatorTypeError, normalise_attribute, unfit
from argosy_phi_ops.errors import FOREIGN, OperatorError
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["complete_message", "explain_error"]


_GIVEN = "given "
_HIDDEN = frozenset({"segments", "counter", "rng"})


class OperatorIndexError(OperatorError, IndexError):
    """An index outside of what an operator was given."""


class _Function(Protocol):
    """An operator or a composed function."""

    name: str
    body: Any


def explain_error(
    op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any], error: Exception
) -> OperatorError | None:
    """An error for users in the place of ``error``; None where that is one already, or a user's own, and within the
    body of another operator, which is what the user called."""
    if any(isinstance(x, Value) for x in operands):
        return None
    if isinstance(error, OperatorError) and not isinstance(error, OperatorMemoryError):
        return complete_message(op, operands, attributes, error)
    if "." in op.name or not _is_inner(error):
        return None
    if str(error).startswith((f"{op.name}:", f"{op.name}(")):  # on purpose
        return _with_arguments(op, operands, attributes, error)
    notes = op.body.__annotations__
    for name, value in attributes.items():
        value, note = normalise_attribute(value), notes.get(name, "")
        wanted = _describe_dtype(name, value) if fits(value, note) else spell(note)
        if wanted:
            return unfit(op.name, name, wanted, value)
    if type(error) is NotImplementedError:
        return None
    return _kind(error)(f"{op.name}: {_in_words(error)} [{_describe_operands(op, operands, attributes)}]")


def _with_arguments(
    op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any], error: Exception
) -> OperatorError | None:
    """An error that names the operator, with what its arguments were; None where it says so already."""
    message = str(error)
    if type(error) not in (ValueError, TypeError, IndexError) or f"[{_GIVEN}" in message or "argument '" in message:
        return None
    return _kind(error)(f"{message} [{_describe_operands(op, operands, attributes)}]")


_INNER_WORDS = {
    "tuple index out of range": "an operand needs more axes than it has",
    "zip() argument": "sequences that belong together should be of one length",
    "unsupported operand type": "an argument should be a number",
    "could not convert string": "an argument should be a number",
    "zero-size array to reduction": "it needs a tensor with elements",
    "has no len()": "an argument should be a sequence",
    "of an empty sequence": "it needs a tensor with elements",
    "Invalid integer data type": "it needs numbers, not booleans",
    "did not contain a loop with signature matching": "it does not take tensors of this dtype",
    "Cannot cast array data": "it does not take tensors of this dtype",
    "for desired array": "it needs a tensor of one axis",
    "Cannot cast ufunc": "it does not take tensors of these dtypes together",
    "could not be broadcast together": "the shapes should broadcast: axes of equal size or 1",
    "Invalid number of FFT data points": "a transform needs a positive number of points",
    "modulo by zero": "a number of parts should be positive",
    "division by zero": "it needs a tensor with elements",
    "negative dimensions": "sizes should not be negative",
    "Matrix is not positive definite": "x is not positive definite",
}
"""What errors of Python's and numpy's insides mean to users of operators."""


def _in_words(error: Exception) -> str:
    message = str(error)
    words = next((words for inner, words in _INNER_WORDS.items() if inner in message), "")
    return words or message or type(error).__name__


def complete_message(
    op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any], error: OperatorError
) -> OperatorError | None:
    """``error`` with the operator and what its arguments were; None where it says so already, or names one of them
    and what was expected of it."""
    message = str(error)
    if f"[{_GIVEN}" in message or f"{op.name}(): " in message or type(error).__init__ is not OperatorError.__init__:
        return None
    return type(error)(
        f"{op.name}: {_shorten_message(op.name, message)} [{_describe_operands(op, operands, attributes)}]"
    )


def _shorten_message(name: str, message: str) -> str:
    """A sentence about operands in users' words: without the names of operator and primitive that stand before it, and
    types as dtype and shape."""
    message = re.sub(r"^(prim\.\w+: )+", "", message.removeprefix(f"{name}: "))
    message = re.sub(rf"^(prim\.\w+: |{re.escape(name)} )", "", message)
    return re.sub(r"tensor<(\[[^\]]*\]), (\w+)>", r"\2 \1", message)


def _is_inner(error: Exception) -> bool:
    """Whether ``error`` is of Python, numpy or the IR: those of argosy's other classes are for users already."""
    kind = type(error)
    return kind in FOREIGN or kind.__module__.startswith(
        ("numpy.exceptions", "numpy._core", "numpy.linalg", "argosy_pir")
    )


def _kind(error: Exception) -> type[OperatorError]:
    kinds = {TypeError: OperatorTypeError, IndexError: OperatorIndexError, MemoryError: OperatorMemoryError}
    return next((mine for theirs, mine in kinds.items() if isinstance(error, theirs)), OperatorError)


def _describe_dtype(name: str, value: Any) -> str:
    """What an attribute that names a dtype should be, where it names none."""
    if not name.endswith("dtype") or not isinstance(value, str):
        return ""
    try:
        as_dtype(value)
    except TypeError:
        return "the name of a dtype"
    return ""


def _describe_operands(op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any]) -> str:
    by_name = _operands_by_name(op, operands, attributes)
    shown = [f"{name}={_value_text(x)}" for name, x in by_name.items()] if by_name else list(map(_value_text, operands))
    plain = [f"{name}={str(value)[:60]}" for name, value in attributes.items() if name not in _HIDDEN]
    return _GIVEN + ", ".join([*shown, *plain])


def _operands_by_name(op: _Function, operands: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Operands by the names of their parameters; empty where that is not told."""
    signature = getattr(op, "signature", None)
    if signature is None:
        return {}
    if "segments" not in attributes and len(operands) == len(signature.operands):
        return {p.name: x for p, x in zip(signature.operands, operands, strict=True) if x is not None}
    segments = {name: value for name, value in attributes.items() if name == "segments"}
    try:
        found: dict[str, Any] = signature.regroup(list(operands), segments)
    except (ValueError, IndexError):
        return {}
    return {name: x for name, x in found.items() if x is not None and name not in _HIDDEN}


def _value_text(x: Any) -> str:
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_value_text, x[:4]))}{', ...' if len(x) > 4 else ''}]"
    if hasattr(x, "shape") and hasattr(x.dtype, "name"):
        return f"{x.dtype.name} {list(x.shape)}"
    if isinstance(x, TensorType):
        return f"{x.dtype} {list(x.shape)}"
    return repr(x)[:40]

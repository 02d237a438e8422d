"""Errors of the operator library. Each refines the builtin that a caller would catch."""

FOREIGN = (
    TypeError, ValueError, LookupError, IndexError, KeyError, AttributeError, AssertionError, ArithmeticError,
    ZeroDivisionError, OverflowError, UnboundLocalError, StopIteration, NotImplementedError, MemoryError,
)  # fmt: skip
"""Classes of Python's with which an operator may fail in its insides: `checks.error_messages` has better."""


class OperatorError(ValueError):
    """An operator was given operands or attributes it does not accept."""


class ShapeError(OperatorError):
    """Shapes do not fit the operator or each other; ``sizes`` are two that should be equal, where that is all."""

    sizes: tuple[object, object] | None = None


class UnsupportedSizes(ShapeError):
    """A program with symbolic sizes has no meaning at those of a call. Nothing was executed."""


class DTypeError(OperatorError, TypeError):
    """A dtype is not supported, or dtypes that must agree do not."""


class AxisError(OperatorError, IndexError):
    """An axis is outside the rank of its operand."""


class DeviceMismatch(OperatorError, RuntimeError):
    """Operands are on several devices."""


class CaptureError(RuntimeError):
    """A program could not be captured, or a traced tensor was used outside its capture."""


class GraphBreak(CaptureError):
    """The value of a traced tensor was needed while capturing."""


class CompileError(RuntimeError):
    """A compiler could not translate a program."""

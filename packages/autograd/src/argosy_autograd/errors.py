"""Errors of differentiation. Each refines the builtin that a caller would catch."""


class DifferentiationError(RuntimeError):
    """A gradient was asked for that cannot be given: a graph already freed, a saved tensor overwritten, an
    unused input."""


class MissingRule(DifferentiationError, NotImplementedError):
    """An operation on the way to the gradient has no derivative rule."""


class UnusedInput(DifferentiationError, ValueError):
    """A gradient was asked for with respect to a tensor that the outputs do not depend on."""

"""Errors of differentiation. Each refines the builtin that a caller would catch."""

from __future__ import annotations

from typing import Any

from argosy_phi_ops.user_line import user_location


class DifferentiationError(RuntimeError):
    """A gradient was asked for that cannot be given: a graph already freed, a saved tensor overwritten, an
    unused input."""


class MissingRule(DifferentiationError, NotImplementedError):
    """An operation on the way to the gradient has no derivative rule."""


def explain_error(error: MissingRule, *reasons: str) -> MissingRule:
    """``error`` with where it arose: ``reasons`` that are empty, or that its text has already, are left out."""
    text = str(error)
    return type(error)("; ".join([text, *(reason for reason in reasons if reason and reason not in text)]))


def constant_gradient(name: str, asked: str) -> DifferentiationError:
    """The error for a derivative ``name`` of the user's own that does not depend on the gradient it takes; ``asked``:
    see :func:`asked_for`."""
    return DifferentiationError(
        f"{name} gives a gradient that does not depend on the one that it takes (detach(), no_grad() or numbers read "
        "on the way): there is no derivative along a direction then; compute it with operators that are recorded; "
        f"{asked}"
    )


class UnusedInput(DifferentiationError, ValueError):
    """A gradient was asked for with respect to a tensor that the outputs do not depend on."""


def unused_input(start: str, x: Any, asked: str, blocker: str = "", otherwise: str = "", name: str = "") -> UnusedInput:
    """The error for ``x``, which nothing depends on as ``start`` says, with its likely reason; ``asked`` tells the
    order of the derivative and who asked for it, ``blocker`` which operation on the way has no derivative, where that
    is known, ``otherwise`` how to do without the error."""
    described = f"{name + ', ' if name else ''}{x.dtype.name} {list(x.shape)}, stop_gradient={x.stop_gradient}"
    end = f"; {otherwise}" if otherwise else ""
    return UnusedInput(f"{start} ({described}); {asked}{likely_reason(x, blocker)}{end}")


def unused_gradient(number: int, x: Any, asked: str, blocker: str = "", name: str = "") -> UnusedInput:
    """The error of ``grad`` for its input ``number``; see :func:`unused_input`."""
    start = f"grad(): the outputs do not depend on input {number}"
    return unused_input(start, x, asked, blocker, "pass allow_unused=True to get None for it", name)


def asked_for(order: int) -> str:
    """That a derivative of ``order`` was asked for, and the line that did."""
    return f"asked for a derivative of order {order} ({user_location()})"


def likely_reason(x: Any, blocker: str = "") -> str:
    """Why nothing depends on ``x``, as far as it tells, after a semicolon."""
    if x.dtype.kind not in "fc":
        return "; it is no floating tensor: cast it before computing with it"
    if x.stop_gradient:
        return "; set its stop_gradient to False before computing with it" + (
            f"; {blocker}" if "on the way" in blocker else ""
        )
    return f"; {blocker}" if blocker else ""


def plain_name(name: str) -> tuple[str, int]:
    """The operator that ``name`` is a derivative of, and of which order: each is named after the one before."""
    plain, order = name, 0
    while plain.endswith("_grad"):
        plain, order = plain.removesuffix("_grad"), order + 1
    return plain, order

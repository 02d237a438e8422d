"""Gradients as part of a static program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.static.program import Program, program_of
from argosy_autograd.engine import grad
from argosy_tensorcore.tensor import Tensor

__all__ = ["append_backward", "gradients"]


def append_backward(
    loss: Tensor,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None,
    callbacks: Any = None,
    checkpoints: Any = None,
    distop_context: Any = None,
) -> list[tuple[Tensor, Tensor]]:
    """Record the gradients of ``loss``, one element, by the parameters that it depends on: pairs of both. A gradient
    is called ``<parameter>@GRAD``.

    parameter_list, no_grad_set: parameters or their names, by default all and none. What is computed again in the
    backward pass is the compiler's choice (``checkpoints`` changes nothing). Raises ValueError for a loss that is no
    variable of the program being built.
    """
    program = _program("append_backward", loss)
    left_out = {_name(x) for x in no_grad_set or ()}
    known = {p.name: p for p in program.all_parameters()}
    given = known.values() if parameter_list is None else [known.get(_name(x), x) for x in parameter_list]
    chosen = [p for p in given if type(p) is Tensor and not p.stop_gradient and p.name not in left_out]
    found = grad([loss], chosen, allow_unused=True) if chosen else []
    pairs = [(p, g) for p, g in zip(chosen, found, strict=True) if g is not None]
    for p, g in pairs:
        program.name_variable(f"{p.name}@GRAD", g)
    return pairs


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] | None = None
) -> list[Tensor | None]:
    """Record the gradients of ``targets`` by ``inputs``, None for those that they do not depend on. They can be
    differentiated again.

    target_gradients: what they are multiplied with, by default ones. no_grad_set: variables that no gradient goes to.
    """
    ends, starts = _as_list(targets), _as_list(inputs)
    seeds = None if target_gradients is None else _as_list(target_gradients)
    _program("gradients", ends[0])
    left_out = {_name(x) for x in no_grad_set or ()}
    wanted = [x for x in starts if x.name not in left_out]
    found = iter(grad(ends, wanted, seeds, create_graph=True, allow_unused=True) if wanted else [])
    return [None if x.name in left_out else next(found) for x in starts]


def _program(function: str, x: Tensor) -> Program:
    program = program_of(x) if type(x) is Tensor else None
    if program is None:
        raise ValueError(f"{function}(): {x!r:.80} is no variable of the program that is being built")
    return program


def _name(x: Any) -> str:
    return x if isinstance(x, str) else str(x.name)


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]

"""Program transforms: reverse and forward derivatives of programs of primitives, control flow and calls.

:func:`vjp_values` and :func:`jvp_values` emit into a program; :func:`vjp_program` and :func:`jvp_program` make
new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import argosy_autograd.rules  # noqa: F401  (fills the tables)
from argosy_autograd.activity import has_gradient
from argosy_autograd.algebra import zeros
from argosy_autograd.forward import jvp_values
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, Value

__all__ = ["jvp_program", "jvp_values", "vjp_program", "vjp_values"]


def vjp_program(program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None) -> Program:
    """A program from the inputs of ``program`` and cotangents to its outputs and gradients.

    ``wrt`` numbers the inputs and then the states to differentiate (default: every differentiable input);
    ``outputs`` the outputs that get a cotangent (default: all differentiable ones), each an input after the
    existing ones. The gradients follow the outputs, zeros where nothing depends on an input. ``program`` is
    left as it is.
    """
    made = program.clone()
    arguments = made.block.arguments
    chosen = [arguments[i] for i in _choose(wrt, made.inputs)]
    ends = list(made.outputs)
    targets = [ends[i] for i in _choose(outputs, ends)]
    cotangents = [made.add_input(value.type) for value in targets]
    builder = _before_return(made)
    gradients = vjp_values(targets, cotangents, chosen, builder)
    made.set_outputs([*made.outputs, *_materialise(gradients, chosen, builder)])
    return made


def jvp_program(program: Program, wrt: Sequence[int] | None = None) -> Program:
    """A program from the inputs of ``program`` and tangents to its outputs and their tangents.

    ``wrt`` numbers the inputs and then the states that move (default: every differentiable input), each of which has
    a tangent among the inputs, after the existing ones. Tangents follow the outputs: one for each differentiable
    output, zeros where it does not depend on what moves. ``program`` is left as it is.
    """
    made = program.clone()
    arguments = made.block.arguments
    moving = [arguments[i] for i in _choose(wrt, made.inputs)]
    ends = list(made.outputs)
    targets = [value for value in ends if has_gradient(value)]
    tangents = [made.add_input(value.type) for value in moving]
    builder = _before_return(made)
    found = jvp_values(targets, moving, tangents, builder)
    made.set_outputs([*ends, *_materialise(found, targets, builder)])
    return made


def _choose(numbers: Sequence[int] | None, values: Sequence[Value]) -> Sequence[int]:
    return [i for i, value in enumerate(values) if has_gradient(value)] if numbers is None else numbers


def _before_return(program: Program) -> Builder:
    last = program.block.last
    assert last is not None
    return Builder(program.block, last)


def _materialise(values: Sequence[Value | None], like: Sequence[Value], builder: Builder) -> list[Value]:
    with emit_at(builder):
        return [zeros(x.shape, x.dtype) if v is None else v for v, x in zip(values, like, strict=True)]

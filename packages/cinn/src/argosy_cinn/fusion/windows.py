"""Operands of products that are linear in more axes than a matrix has, and zero outside of what they look at: patches.

A view is lowered to the one element that it reads, with its axes split until the index of that is linear in them. What
must hold for the element to exist (a place may be outside the image) are bounds on other linear combinations.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.indices import Index, Position, SplitVariable, Variable, atom_index, linearise
from argosy_cinn.forms.product import Axis
from argosy_cinn.lowering.elements import ElementLowering
from argosy_cinn.shapes import sizes
from argosy_pir.values import Value


@dataclass(frozen=True, slots=True)
class View:
    """Elements of ``buffer`` from ``offset`` on. ``axes``: for every axis of the operand those that it is split into,
    as few as there can be; ``bounds`` as in `Window`."""

    buffer: Value
    offset: int
    axes: tuple[tuple[Axis, ...], ...]
    bounds: tuple[tuple[int, int], ...]


def linear_view(operand: Value, in_memory: Container[Value]) -> View | None:
    """An operand of known sizes as a view; None where it is not linear in any axes, or computed."""
    shape = sizes(operand)
    if not all(isinstance(n, int) for n in shape) or 0 in shape:
        return None
    extents = [[n] for n in shape]
    while True:
        variables = _variables(extents)
        try:
            node = _lower(operand, variables, in_memory)
            break
        except SplitVariable as request:
            _split(extents, request)
    found = _element(node)
    if found is None or found[0].dtype != operand.dtype:
        return None
    element, conditions = found
    buffer, flat = element.payload
    indices = [flat, *(c.payload[0] for c in conditions)]
    if not all(isinstance(atom, Variable) for index in indices for atom, _ in index.terms):
        return None
    axes = tuple(_merge([_axis(v, indices) for v in axis]) for axis in variables)
    bounds = tuple((index.constant - low, high - low) for index, low, high in (c.payload for c in conditions))
    return View(buffer, flat.constant, axes, bounds)


def _variables(extents: Sequence[Sequence[int]]) -> list[list[Variable]]:
    number, made = 0, []
    for axis in extents:
        made.append([Variable(number + i, n) for i, n in enumerate(axis)])
        number += len(axis)
    return made


def _lower(operand: Value, variables: list[list[Variable]], in_memory: Container[Value]) -> Expression:
    lowering = ElementLowering(Graph(), in_memory, lambda value, position: None, split=True)
    lowering.immediates = False
    where = tuple(linearise([atom_index(v) for v in axis], [v.extent for v in axis]) for axis in variables)
    return lowering.value(operand, Position(sizes(operand), None, where, True))


def _split(extents: list[list[int]], request: SplitVariable) -> None:
    position = request.variable.number
    for axis in extents:
        if position < len(axis):
            axis[position : position + 1] = [axis[position] // request.factor, request.factor]
            return
        position -= len(axis)


def _element(node: Expression) -> tuple[Expression, list[Expression]] | None:
    """The element that is read and the conditions under which it is; elsewhere the expression is zero."""
    if node.kind == "load":
        return None if node.arguments else (node, [])
    if node.kind != "select":
        return None
    condition, inside, outside = node.arguments
    zero = outside.kind == "constant" and not any(outside.payload)
    if inside.kind != "load" or not zero or set(_parts(condition)) != set(inside.arguments):
        return None
    conditions = list(inside.arguments)
    return (inside, conditions) if all(c.kind == "within" for c in conditions) else None


def _parts(condition: Expression) -> list[Expression]:
    """What a conjunction is made of."""
    if condition.kind != "logical_and":
        return [condition]
    return [part for argument in condition.arguments for part in _parts(argument)]


def _axis(variable: Variable, indices: Sequence[Index]) -> Axis:
    stride, *steps = (index.coefficient(variable) for index in indices)
    return Axis(variable.extent, stride, tuple(steps))


def _merge(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The same elements in the same order along fewer axes."""
    found: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        before = found[-1] if found else None
        inner = [n * axis.extent for n in (axis.stride, *axis.steps)]
        if before is not None and [before.stride, *before.steps] == inner:
            found[-1] = Axis(before.extent * axis.extent, axis.stride, axis.steps)
        else:
            found.append(axis)
    return tuple(found)


def join_axes(axes: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """Several axes of an operand, one after the other."""
    return _merge([part for axis in axes for part in axis])

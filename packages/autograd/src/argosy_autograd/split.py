"""Cutting a program's derivative in two: a forward program that also returns what the backward program reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_autograd.activity import has_gradient
from argosy_autograd.algebra import zeros
from argosy_autograd.insertion import erase_unused
from argosy_autograd.residuals import captured_from, rematerialise_constants, replace_within
from argosy_autograd.transform import vjp_values
from argosy_phi_ops.context import emit_at
from argosy_pir import Block, Builder, Program, SymExpr, TensorType, Value, dim_symbols

__all__ = ["SplitProgram", "split_program"]


class SplitProgram:
    """``forward`` is the program with residuals as further outputs, the last ``residuals`` of them.

    ``backward`` takes the arguments of the program (inputs, then states) at the positions ``arguments``, the
    residuals, and the cotangents; it returns one gradient for each value asked for.
    """

    __slots__ = ("arguments", "backward", "forward", "residuals")

    def __init__(self, forward: Program, backward: Program, arguments: tuple[int, ...], residuals: int) -> None:
        self.forward = forward
        self.backward = backward
        self.arguments = arguments
        self.residuals = residuals


def split_program(
    program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None
) -> SplitProgram:
    """Forward and backward programs of ``program``, which is left as it is; ``wrt`` and ``outputs`` as in
    :func:`vjp_program`. Nothing is computed twice but constants."""
    forward = program.clone()
    source = forward.block
    wanted = [source.arguments[i] for i in _choose(wrt, forward.inputs)]
    ends = [forward.outputs[i] for i in _choose(outputs, forward.outputs)]
    backward = Program(program.name + "_backward", [value.type for value in ends])
    block = backward.block
    gradients = vjp_values(ends, list(block.arguments), wanted, Builder.at_end(block), source)
    with emit_at(Builder.at_end(block)):
        made = [zeros(x.shape, x.dtype) if g is None else g for g, x in zip(gradients, wanted, strict=True)]
    backward.set_outputs(made)
    erase_unused([op for op in block if op is not block.last])
    rematerialise_constants(source, block)
    needed = captured_from(source, block)
    arguments: list[Value] = [v for v in source.arguments if v in needed]
    arguments += _size_carriers(source, block, arguments)
    residuals = [v for v in needed if v not in source.arguments]
    for i, value in enumerate([*arguments, *residuals]):
        replace_within(block, value, block.add_argument(value.type, value.name_hint, i))
    forward.set_outputs([*forward.outputs, *residuals])
    _take_functions(forward, backward)
    positions = tuple(source.arguments.index(v) for v in arguments)
    return SplitProgram(forward, backward, positions, len(residuals))


def _choose(numbers: Sequence[int] | None, values: Sequence[Value]) -> Sequence[int]:
    return [i for i, value in enumerate(values) if has_gradient(value)] if numbers is None else numbers


def _symbols(value: Any) -> set[str]:
    """Symbolic sizes in an attribute or type."""
    if isinstance(value, SymExpr):
        return set(dim_symbols(value))
    if isinstance(value, TensorType):
        value = value.shape
    return {name for item in value for name in _symbols(item)} if isinstance(value, tuple) else set()


def _size_carriers(source: Block, block: Block, arguments: Sequence[Value]) -> list[Value]:
    """Arguments that the backward program takes for their shape alone, to know the sizes that it names."""
    used: set[str] = set()
    for op in block.walk():
        for attribute in op.attributes.values():
            used |= _symbols(attribute) | _symbols(getattr(attribute, "type", None))
    for value in (*arguments, *block.arguments):
        used -= {str(n) for n in getattr(value.type, "shape", ()) if isinstance(n, SymExpr)}
    carriers: list[Value] = []
    for value in source.arguments:
        found = used & {str(n) for n in getattr(value.type, "shape", ()) if isinstance(n, SymExpr)}
        if found:
            carriers.append(value)
            used -= found
    return carriers


def _take_functions(forward: Program, backward: Program) -> None:
    """Give the backward program copies of the functions that it calls, and those they call."""
    while True:
        called = {op.attributes["callee"].name for op in backward.walk() if op.name == "builtin.call"}
        missing = sorted(called - backward.functions.keys())
        if not missing:
            return
        for name in missing:
            backward.add_function(forward.functions[name].clone())

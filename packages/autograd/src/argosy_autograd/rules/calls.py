"""Derivatives of calls: each function gets, once for each way it is differentiated, a forward version that also
returns what the backward function reads. So repeated blocks stay single functions, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autograd.algebra import Value, zeros
from argosy_autograd.errors import DifferentiationError
from argosy_autograd.forward import jvp_values
from argosy_autograd.insertion import erase_unused
from argosy_autograd.registry import structured_rule
from argosy_autograd.residuals import captured_from, rematerialise_constants, replace_within
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Block, Builder, Function, Operation, Program, Symbol, program_of
from argosy_pir.values import OpResult

Optional = Sequence[Value | None]


def _program(op: Operation) -> Program:
    program = program_of(op)
    if program is None:
        raise DifferentiationError("a call outside of a program cannot be differentiated")
    return program


def _bits(flags: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def _emit_call(name: str, operands: Sequence[Value], function: Function) -> Operation:
    builder = context().builder
    assert builder is not None
    return builder.create("builtin.call", operands, {"callee": Symbol(name)}, result_types=function.type.results)


def _close(block: Block, values: Optional, like: Sequence[Value]) -> None:
    builder = Builder.at_end(block)
    with emit_at(builder):
        ends = [zeros(x.shape, x.dtype) if v is None else v for v, x in zip(values, like, strict=True)]
    builder.create("builtin.return", ends)


def _reverse_call(op: Operation, incoming: Optional, active: set[Value]) -> list[tuple[Value, Value | None]]:
    program = _program(op)
    name = op.attributes["callee"].name
    wanted = [value in active for value in op.operands]
    given = [g is not None for g in incoming]
    stem = f"{name}.vjp_{_bits(wanted)}_{_bits(given)}"
    if stem + ".backward" not in program.functions:
        _split(program, name, stem, wanted, given)
    forward, backward = program.functions[stem + ".forward"], program.functions[stem + ".backward"]
    reads = backward.attributes["arguments"]
    kept = _switch(op, stem + ".forward", forward)
    residuals = [*(op.operand(i) for i in reads), *kept]
    cotangents = [g for g in incoming if g is not None]
    made = _emit_call(stem + ".backward", [*residuals, *cotangents], backward)
    return list(zip([v for v, w in zip(op.operands, wanted, strict=True) if w], made.results, strict=True))


def _switch(op: Operation, name: str, function: Function) -> list[Value]:
    """Let ``op`` call the version of its function that returns more; returns the additional results."""
    types = function.type.results
    new = [OpResult(op, i, types[i]) for i in range(len(op.results), len(types))]
    op.results = (*op.results, *new)
    op.attributes["callee"] = Symbol(name)
    return list(new)


def _split(program: Program, name: str, stem: str, wanted: Sequence[bool], given: Sequence[bool]) -> None:
    """Make the forward and backward functions of ``name`` for one choice of operands and results."""
    forward = program.functions[name].clone()
    forward.name = stem + ".forward"
    program.add_function(forward)  # before its body is differentiated: it may contain calls
    source = forward.block
    last = source.last
    assert last is not None
    wrt = [a for a, w in zip(source.arguments, wanted, strict=True) if w]
    ends = [value for value, w in zip(last.operands, given, strict=True) if w]
    backward = Function(stem + ".backward", [value.type for value in ends])
    block = backward.block
    gradients = vjp_values(ends, list(block.arguments), wrt, Builder.at_end(block), source)
    _close(block, gradients, wrt)
    erase_unused([o for o in block if o is not block.last])
    rematerialise_constants(source, block)
    needed = captured_from(source, block)
    arguments = [v for v in needed if v in source.arguments]
    results = [v for v in needed if v not in source.arguments]
    for i, value in enumerate([*arguments, *results]):
        replace_within(block, value, block.add_argument(value.type, index=i))
    last.set_operands([*last.operands, *results])
    backward.attributes["arguments"] = tuple(source.arguments.index(v) for v in arguments)
    program.add_function(backward)


def _forward_call(op: Operation, known: dict[Value, Value]) -> Optional:
    program = _program(op)
    name = op.attributes["callee"].name
    moving = [value in known for value in op.operands]
    stem = f"{name}.jvp_{_bits(moving)}"
    if stem not in program.functions:
        _make_tangent(program, name, stem, moving)
    function = program.functions[stem]
    tangents = [known[value] for value in op.operands if value in known]
    made = _emit_call(stem, [*op.operands, *tangents], function).results
    results: list[Value | None] = [None] * len(op.results)
    for place, value in zip(function.attributes["results"], made, strict=True):
        results[place] = value
    return results


def _make_tangent(program: Program, name: str, stem: str, moving: Sequence[bool]) -> None:
    function = program.functions[name].clone()
    function.name = stem
    block = function.block
    last = block.last
    assert last is not None
    wrt = [a for a, m in zip(block.arguments, moving, strict=True) if m]
    tangents = [block.add_argument(a.type) for a in wrt]
    program.add_function(function)
    found = jvp_values(last.operands, wrt, tangents, Builder(block, last), block)
    places = [i for i, t in enumerate(found) if t is not None]
    last.set_operands([t for t in found if t is not None])
    erase_unused([o for o in block if o is not last])
    function.attributes["results"] = tuple(places)


structured_rule("builtin.call", _reverse_call, _forward_call)

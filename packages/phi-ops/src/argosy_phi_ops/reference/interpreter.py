"""The interpreter of primitive programs: one numpy kernel after another, in program order.

A block is planned once: each operation becomes a step that holds its kernel, its attributes and the values
that die with it. Steps read and write an environment from values to arrays; tokens are None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops.checks.index_errors import CHECK, checks_size, find_outlier, index_error_of, size_error_of
from argosy_phi_ops.errors import CompileError, UnsupportedSizes
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.control import plan_control
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_phi_ops.reference.kernels.registry import kernel_into_for
from argosy_phi_ops.reference.running import RUNNING
from argosy_phi_ops.reference.straight_line import StraightLine, is_straight
from argosy_phi_ops.reference.symbols import (
    Symbols,
    bind_symbols,
    evaluate_attributes,
    evaluate_dim,
    evaluate_shape,
    has_symbols,
)
from argosy_pir.attributes import Dense
from argosy_pir.core import Block, Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

Array = np.ndarray[Any, Any]
Environment = dict[Value, Any]
Step = Callable[["Execution", Environment], None]


class Execution:
    """One execution: the sizes of this call and the communicators. `calls` counts the kernels called so far,
    by primitive.
    """

    __slots__ = ("calls", "communicators", "symbols")

    def __init__(self, symbols: Symbols, communicators: Mapping[tuple[int, ...], Any]) -> None:
        self.symbols = symbols
        self.communicators = communicators
        self.calls: dict[str, int] = {}


class BlockPlan:
    """A block ready to run: steps, each with the values of this block that nobody reads after it."""

    __slots__ = ("arguments", "leftover", "returned", "steps")

    def __init__(self, block: Block, program: Program) -> None:
        operations = list(block)
        terminator = operations.pop()
        self.arguments = block.arguments
        self.returned = terminator.operands
        self.leftover = tuple(value for value in self.returned if _block_of(value) is block)
        last = _last_uses(block, operations)
        self.steps = [(plan_operation(op, program), last.get(op, ())) for op in operations]

    def run(self, run: Execution, environment: Environment, arguments: Sequence[Any]) -> list[Any]:
        """Execute with the block's arguments; returns the terminator's operands."""
        environment.update(zip(self.arguments, arguments, strict=True))
        for step, dead in self.steps:
            step(run, environment)
            for value in dead:
                del environment[value]
        returned = [environment[value] for value in self.returned]
        for value in self.leftover:
            environment.pop(value, None)
        return returned


def _block_of(value: Value) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent


def _last_uses(block: Block, operations: Sequence[Operation]) -> dict[Operation, tuple[Value, ...]]:
    """For each operation the values of this block whose last reader (regions included) it is, or that none
    reads.
    """
    last: dict[Value, Operation] = {argument: operations[0] for argument in block.arguments if operations}
    for op in operations:
        last.update((result, op) for result in op.results)
        last.update((value, op) for inner in op.walk() for value in inner.operands if value in last)
    kept = set(block.last.operands) if block.last is not None else set()
    dead: dict[Operation, list[Value]] = {}
    for value, op in last.items():
        if value not in kept:
            dead.setdefault(op, []).append(value)
    return {op: tuple(values) for op, values in dead.items()}


def plan_operation(op: Operation, program: Program) -> Step:
    """The step that executes `op`.

    Raises:
        CompileError: for an operation that is not primitive, control flow or builtin, or that has no kernel.
    """
    if op.name == CHECK:
        return _plan_check(op)
    if op.dialect == "prim":
        return _plan_primitive(op)
    if op.name == "builtin.constant":
        return _plan_constant(op)
    if op.name == "builtin.call":
        return _plan_call(op, program)
    if op.dialect == "control":
        return plan_control(op, [BlockPlan(region.block, program) for region in op.regions])
    raise CompileError(_refusal(op))


def _refusal(op: Operation) -> str:
    where = "" if op.location.is_unknown else f" ({op.location})"
    advice = {
        "phi": "it is an operator: run the decompose pass first",
        "ad": "it is a gradient request: run the expand-gradients pass first",
    }
    reason = advice.get(op.dialect, "only prim, control and builtin operations are executed")
    return f"the reference interpreter cannot execute '{op.name}'{where}; {reason}"


def _plan_primitive(op: Operation) -> Step:
    try:
        call = kernel_for(op.name)
    except NotImplementedError as error:
        where = op.location.suffix
        raise CompileError(f"'{op.name}'{where} has neither a lowering nor a reference kernel") from error
    operands, results = op.operands, op.results
    symbolic = any(has_symbols(value) for value in op.attributes.values())
    effects = communicates(op)

    def step(run: Execution, environment: Environment) -> None:
        keywords: Mapping[str, Any] = op.attributes
        if symbolic:
            keywords = evaluate_attributes(op.attributes, run.symbols)
        if effects:
            keywords = {**keywords, "communicators": run.communicators}
            RUNNING.value = op
        try:
            outcome = call(*[environment[value] for value in operands], **keywords)
        except Exception as error:
            where = op.location.suffix
            error.add_note(f"while interpreting '{op.name}'{where}")
            raise
        finally:
            if effects:
                RUNNING.value = None
        run.calls[op.name] = run.calls.get(op.name, 0) + 1
        values = (outcome,) if len(results) == 1 else outcome
        for result, value in zip(results, values, strict=True):
            _check_result(op, result, value, run.symbols)
            environment[result] = value

    return step


def _plan_check(op: Operation) -> Step:
    """Indices held against their axis; the error tells the user's line."""
    indices, a = op.operand(0), op.attributes

    def step(run: Execution, environment: Environment) -> None:
        def number(dim: Any) -> int:
            return evaluate_dim(dim, run.symbols)

        besides = None if a["besides"] is None else number(a["besides"])
        wrong = find_outlier(environment[indices], number(a["low"]), number(a["size"]), besides)
        if wrong is not None:
            raise size_error_of(op, number(a["size"])) if checks_size(op) else index_error_of(op, wrong, number)
        run.calls[op.name] = run.calls.get(op.name, 0) + 1

    return step


def _check_result(op: Operation, result: Value, value: Any, symbols: Symbols) -> None:
    """A kernel that disagrees with the type rule is a bug in one of them, or a formula of sizes has no meaning at those
    of the call; it must not pass on."""
    expected = result.type
    if not isinstance(expected, TensorType):
        return
    if value.shape != evaluate_shape(expected.shape, symbols) or value.dtype.name != expected.dtype:
        wrong = f"the reference kernel of '{op.name}' gave {value.dtype.name} {list(value.shape)}"
        kind = RuntimeError if expected.is_static else UnsupportedSizes  # a formula of sizes holds for most of them
        raise kind(f"{wrong}, but its type is {expected}")


def plan_into(op: Operation) -> Callable[..., None] | None:
    """``(out, *operands)`` writes the one tensor that `op` gives to an array, or several to a sequence of arrays; None
    where its kernel has no such form. What communicates takes its ``communicators``, too.

    Symbolic attributes and results without elements are for `plan_operation`.
    """
    call = kernel_into_for(op.name) if op.dialect == "prim" else None
    if call is None or any(has_symbols(value) for value in op.attributes.values()):
        return None
    return partial(call, **op.attributes)


def communicates(op: Operation) -> bool:
    """Whether an operation takes or gives what is no tensor: it is in a chain of effects."""
    return any(not isinstance(v.type, TensorType) for v in (*op.operands, *op.results))


def _plan_constant(op: Operation) -> Step:
    dense, result = op.attributes["value"], op.result
    assert isinstance(dense, Dense)
    fixed = constant_array(dense, {}) if dense.type.is_static else None

    def step(run: Execution, environment: Environment) -> None:
        environment[result] = constant_array(dense, run.symbols) if fixed is None else fixed

    return step


def _plan_call(op: Operation, program: Program) -> Step:
    name = op.attributes["callee"].name
    plans: list[BlockPlan] = []  # made at the first call: functions may call each other in any order

    def step(run: Execution, environment: Environment) -> None:
        if not plans:
            plans.append(BlockPlan(program.functions[name].block, program))
        returned = plans[0].run(run, {}, [environment[value] for value in op.operands])
        environment.update(zip(op.results, returned, strict=True))

    return step


def communicator_table(communicators: Any) -> Mapping[tuple[int, ...], Any]:
    """From a group of ranks to its communicator; the empty group and the group of all ranks mean the first
    one given.

    `communicators` is such a mapping already, or a sequence whose first member spans all ranks.
    """
    if isinstance(communicators, Mapping):
        return communicators
    if not communicators:
        return {}
    world = communicators[0]
    return {(): world, tuple(range(world.size)): world}


class ProgramPlan:
    """A program ready to be interpreted any number of times.

    Raises:
        CompileError: if the program holds an operation that is not primitive, control flow or builtin.
    """

    def __init__(self, program: Program) -> None:
        for function in program.functions.values():  # refuse early what a call would refuse late
            BlockPlan(function.block, program)
        self.program = program
        self.block = BlockPlan(program.block, program)
        self.calls: dict[str, int] = {}  # kernels called by the last run

    def run(
        self, inputs: Sequence[Array], states: Sequence[Array] = (), communicators: Any = ()
    ) -> tuple[list[Array], list[Array]]:
        """See :func:`interpret`."""
        program = self.program
        _check_count(program, "inputs", inputs, len(program.inputs))
        _check_count(program, "states", states, len(program.states))
        labels = [f"input {i}" for i in range(len(inputs))] + [f"state {s.name!r}" for s in program.states]
        arrays = [*inputs, *states]
        symbols = bind_symbols(zip(labels, program.block.arguments, arrays, strict=True))
        run = Execution(symbols, communicator_table(communicators))
        returned = self.block.run(run, {}, arrays)
        self.calls = run.calls
        split = len(returned) - len(states)
        return returned[:split], returned[split:]


def _check_count(program: Program, what: str, given: Sequence[Array], expected: int) -> None:
    if len(given) != expected:
        raise ValueError(f"program '{program.name}' takes {expected} {what}, got {len(given)}")


def interpret(
    program: Program, inputs: Sequence[Array], states: Sequence[Array] = (), communicators: Any = ()
) -> tuple[list[Array], list[Array]]:
    """Run a program of primitives on ndarrays; returns (outputs, new states).

    Nothing given is written. Results may be views of what was given or of each other. Symbolic sizes are
    bound from the shapes of inputs and states.

    Raises:
        CompileError: for operations that are not primitive (operators must be decomposed first).
        ShapeError, DTypeError: naming the input that does not fit its type.
    """
    return ProgramPlan(program).run(inputs, states, communicators)


def prepare(program: Program) -> Callable[[Sequence[Array]], list[Array]]:
    """A function from input arrays to output arrays for a program without symbolic sizes or states.

    Outputs may be views of inputs. This is how eager mode runs operators that have no kernel of their own.
    """
    if is_straight(program):
        return StraightLine(program).run
    plan = BlockPlan(program.block, program)
    return lambda arrays: plan.run(Execution({}, {}), {}, arrays)

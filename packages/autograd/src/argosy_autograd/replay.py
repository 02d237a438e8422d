"""The tape read back as a program: functions of computed tensors that differentiate several times, in one sweep.

What is asked of an eager tensor and of the points it was computed at (its Laplacian, say) is captured once for every
shape of a history: the operators between the two are written down again, and the captured function differentiates
them. The history kept what first derivatives read, and higher ones read no more than that: kept values become inputs of
the program, which is then one operator, with a place on the tape of its own. What the history did not keep must have
dropped out by then; else the caller goes another way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

from argosy_autograd import hooks
from argosy_autograd.activity import PRODUCTS
from argosy_autograd.dependence import Dependence, moving_targets
from argosy_autograd.derivatives import ProgramOperator, operand_types
from argosy_autograd.errors import MissingRule
from argosy_autograd.history import History, PastRequest, Place, Request, Step, history_of
from argosy_autograd.modes import enable_grad
from argosy_autograd.recipes import Recipe
from argosy_autograd.tape import Edge, OperatorNode, edge_of, tensor_at
from argosy_autograd.tiered_program import TieredProgram
from argosy_autograd.tracing import traced_grad
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.context import context, own_context
from argosy_phi_ops.eager.recording import record_results
from argosy_pir import Program, TensorType, Value
from argosy_pir.passes import PassManager
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Function", "read_back", "replay_sweep", "run_replay"]

Function = Callable[[list[Tensor], list[Tensor], list[Tensor]], Sequence[Tensor | None]]
"""What is asked: of values, of the points they were computed at, and of further factors."""

_PIPELINE = "decompose,taylor-mode,expand-gradients"

Read = tuple[int, int]
"""What a program reads: (step, position of what it kept or number of its seed), or one of those below, by number."""

_POINTS, _VALUES, _FACTORS = -1, -2, -3


class Replay:
    """A captured function: an operator, and what it reads. ``sources`` are the inputs that each result depends on by
    the structure of what was captured, which numbers that turn out to be zero hide, ``factors`` those that
    derivatives of every order do."""

    def __init__(
        self,
        name: str,
        program: Program,
        reads: list[Read],
        device: Any,
        sources: Sequence[Collection[Read | None]],
        factors: Collection[Read | None],
    ) -> None:
        also = [frozenset(reads.index(read) for read in found) for found in sources]  # type: ignore[arg-type]
        numbers = frozenset(reads.index(read) for read in factors)  # type: ignore[arg-type]
        self.operator: Any = ProgramOperator(name, program, device, numbers, also)
        self.reads = reads
        self._run = TieredProgram(program, device)

    def __call__(self, operands: Sequence[Tensor]) -> list[Tensor]:
        """The results, recorded."""
        made = [Tensor._wrap(StridedArray.from_array(a)) for a in self._run([x.payload.ndarray for x in operands])]
        record_results(self.operator, operands, {}, made)
        return made


_replays: BoundedCache = BoundedCache(256)


def replay_sweep(
    name: str, key: Hashable, function: Callable[..., Tensor], ys: Tensor, xs: Tensor, factors: Sequence[Tensor] = ()
) -> Tensor | None:
    """``function(ys, xs, *factors)`` in one sweep; None where the history of ``ys`` does not allow it.

    ``key`` tells functions of one ``name`` apart. The result is recorded.
    """
    history = read_back([ys], [xs], factors)
    if history is None:
        return None

    def apply(values: list[Tensor], points: list[Tensor], given: list[Tensor]) -> list[Tensor]:
        return [function(values[0], points[0], *given)]

    made = run_replay(name, key, apply, history, [ys], [xs], factors)
    return None if made is None else made[0]


def read_back(ys: Sequence[Tensor], xs: Sequence[Tensor], factors: Sequence[Tensor] = ()) -> History | None:
    """The history of ``ys`` from ``xs`` on; None where it cannot be written down again."""
    if any(type(t.payload) is not StridedArray for t in (*ys, *xs, *factors)) or context().layers or hooks.active:
        return None
    ends, sources = [edge_of(y) for y in ys], [edge_of(x) for x in xs]
    if None in ends or None in sources:
        return None
    return history_of(ends, sources)  # type: ignore[arg-type]


def run_replay(
    name: str,
    key: Hashable,
    function: Function,
    history: History,
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    factors: Sequence[Tensor] = (),
) -> list[Tensor] | None:
    """The results of ``function(ys, xs, factors)`` in one sweep, recorded; None where that cannot be."""
    points = _points(history, xs)
    types = tuple(tuple(t.payload.array_type for t in group) for group in (ys, points, factors))
    whole = (name, key, types, history.steps, history.ends)
    if whole not in _replays:
        _replays[whole] = _capture(name, function, history, len(xs), points, factors)
    found: Replay | None = _replays[whole]
    if found is None:
        return None
    held = {i: _saved_by_position(history.items[i]) for i in {i for i, _ in found.reads} if i >= 0}
    held |= {k: dict(enumerate(group)) for k, group in ((_POINTS, points), (_VALUES, ys), (_FACTORS, factors))}
    return found([held[i][k] for i, k in found.reads])


def _points(history: History, xs: Sequence[Tensor]) -> list[Tensor]:
    """The sources of ``history`` as tensors: ``xs``, and leaves that requests on the way differentiate by."""
    return [*xs, *(leaf for leaf, _ in history.sources[len(xs) :])]


def _saved_by_position(item: OperatorNode | Request) -> dict[int, Tensor]:
    """What a node kept by position, with its place in the graph; the seeds of a request by number."""
    if type(item) is Request:
        return {k: seed for k, seed in enumerate(item.seeds) if seed is not None}
    assert isinstance(item, OperatorNode)
    count = len(item.edges or ())
    found = {}
    for position, value in item.unpack_saved().items():
        operand = position < count
        edge: Edge | None = item.edges[position] if operand and item.edges else (item, position - count)
        dtype = "" if type(value) is StridedArray else _dtype(item.recipe, position)
        found[position] = tensor_at(value, edge, dtype)
    return found


def _dtype(recipe: Recipe, operand: int) -> str:
    """The dtype that a number is promoted to."""
    return operand_types(recipe.key[0], recipe.key[1])[operand].dtype


def _capture(
    name: str, function: Function, history: History, count: int, points: Sequence[Tensor], factors: Sequence[Tensor]
) -> Replay | None:
    with own_context(), Tracer(name) as tracer, enable_grad():
        inputs = [tracer.input(_type(x), stop_gradient=False) for x in points]
        given = [tracer.input(_type(t), stop_gradient=False) for t in factors]
        writer = _Writer(history, tracer, inputs, len(given))
        values = [tracer.wrap(writer.values[end], False) for end in history.ends]
        made = function(values, inputs[:count], given)
        if not writer.complete or any(x is None for x in made):
            return None
        captured = tracer.finish(made)  # type: ignore[arg-type]
    if captured.states or captured.draws:
        return None
    again = _repeated_values(history)
    program = captured.program
    live: dict[Value, Read | None] = {x: writer.reads[i] for i, x in enumerate(program.inputs) if x in writer.live}
    moves = [{live[x] for x in moving_targets([y], live)} for y in program.outputs]
    powers = {live[x] for x in Dependence(program.outputs, live).powers() if x in live}
    program.set_outputs([*program.outputs, *(writer.values[place] for place in again)])
    try:
        PassManager(_PIPELINE).run(program)
    except MissingRule:
        return None
    found = _with_kept_values(program, len(made), writer.reads, list(again.values()), powers.union(*moves))
    if found is None:
        return None
    return Replay(name, program, found, points[0].payload.device, moves, powers)


class _Writer:
    """Writes the steps of a history into the program that is captured, the inputs of which are ``points`` and as many
    factors; ``reads`` describes all inputs: None for what was not kept. ``live`` are those that want gradients,
    ``complete`` tells whether every request on the way has a result."""

    def __init__(self, history: History, tracer: Tracer, points: Sequence[Tensor], factors: int) -> None:
        self.tracer = tracer
        self.points = points
        self.reads: list[Read | None] = [(_POINTS, k) for k in range(len(points))]
        self.reads += [(_FACTORS, k) for k in range(factors)]
        self.values: dict[Place, Value] = {(-1, k): tracer.value(x) for k, x in enumerate(points)}
        self.live = list(self.values.values())
        self.complete = True
        for i, (step, item) in enumerate(zip(history.steps, history.items, strict=True)):
            made = self._replay_request(i, step, item) if type(step) is PastRequest else self._replay_op(i, step, item)
            self.values.update({(i, k): value for k, value in enumerate(made)})

    def _replay_op(self, i: int, step: Any, node: OperatorNode) -> Sequence[Value]:
        """The results of an operator."""
        op, kinds, _, wants = step.recipe.key
        operands: list[Value] = []
        for k, (place, type) in enumerate(zip(step.operands, operand_types(op, kinds), strict=True)):
            if place is None:
                operands.append(self._input(type, (i, k) if k in step.keeps else None, wants[k]))
            else:
                operands.append(self.values[place])
        self.complete = self.complete and not getattr(op, "factors", ())
        if op.name in PRODUCTS and all(wants):  # as it was written: what depends on it is told by that
            whole = op(*(self.tracer.wrap(v, False) for v in operands), **node.recipe.attributes)
            return [self.tracer.value(whole)]
        expansion = op.expand([v.type for v in operands], node.recipe.attributes)
        made: Sequence[Value] = expansion.inline(operands, self.tracer.program.block, None)
        return made

    def _replay_request(self, i: int, step: PastRequest, request: Request) -> Sequence[Value]:
        """The results of a gradient request."""
        pairs = [(k, place) for k, place in enumerate(step.ends) if place is not None]
        ends = [self.tracer.wrap(self.values[place], False) for _, place in pairs]
        seeds = [self._seed(i, k, request.seeds[k]) for k, _ in pairs]
        wanted = [self.points[number] for _, number in step.wanted]
        made = traced_grad(ends, wanted, seeds, True, True, ())
        self.complete = self.complete and all(g is not None for g in made)
        return [self.tracer.value(x if g is None else g) for g, x in zip(made, wanted, strict=True)]

    def _seed(self, i: int, k: int, seed: Tensor | None) -> Tensor | None:
        return None if seed is None else self.tracer.wrap(self._input(_type(seed), (i, k)))

    def _input(self, type: TensorType, read: Read | None, wanting: bool = False) -> Value:
        """A further input; ``wanting``: what it stands for wants gradients."""
        self.reads.append(read)
        made = self.tracer.value(self.tracer.input(type, stop_gradient=not wanting))
        if wanting and read is not None:
            self.live.append(made)
        return made


def _repeated_values(history: History) -> dict[Place, Read]:
    """The values that move with the points and are kept, too: they need not be computed again. Points that are kept
    are read like these, so that a change in place is noticed."""
    found: dict[Place, Read] = {}
    for i, step in enumerate(history.steps):
        if type(step) is not Step:
            continue
        for position in step.keeps:
            count = len(step.operands)
            place = step.operands[position] if position < count else (i, position - count)
            if place is not None:
                found[place] = (i, position)
    found.update({end: (_VALUES, k) for k, end in enumerate(history.ends)})
    return found


def _with_kept_values(
    program: Program, count: int, reads: list[Read | None], again: list[Read], sources: Collection[Read | None]
) -> list[Read] | None:
    """Let ``program``, whose outputs after the first ``count`` are values to be had already, read these; gives what its
    inputs are then. None where it still reads what was not kept. Points stay, and
    ``sources`` that were kept: the tape tells what depends on them."""
    for value in program.outputs[count:]:
        value.replace_all_uses_with(program.add_input(value.type))
    program.set_outputs(program.outputs[:count])
    PassManager("cse,dce").run(program)
    found: list[Read] = []
    for i, read in reversed(list(enumerate([*reads, *again]))):
        if not program.inputs[i].has_uses and (read is None or (read[0] != _POINTS and read not in sources)):
            program.block.erase_argument(i)
        elif read is None:
            return None
        else:
            found.append(read)
    return found[::-1]


def _type(x: Tensor) -> TensorType:
    return TensorType(x.payload.shape, x.dtype.name)

"""The order of steps, and where every value lives.

States are updated in place where that is safe: the group that makes the new value writes it over the old one, after
every other reader of the old value has run (which adds edges to the order), and reads the old value itself only at the
element it is about to write. Other states are copied at the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from argosy_cinn.assembly.control import ControlFlow
from argosy_cinn.attention.strips import Partial as StripPartial
from argosy_cinn.attention.strips import StripKernel, lower_region
from argosy_cinn.checks.note import RECORD, RECORD_BYTES, NoteKernel, lower_note
from argosy_cinn.dialect import FOURIER, NOTE, ORDER
from argosy_cinn.fourier.kernel import FourierKernel, lower_fourier
from argosy_cinn.fuel import allowed
from argosy_cinn.fusion.cost import Memory
from argosy_cinn.fusion.groups import Fusion, Group
from argosy_cinn.fusion.kernels import Epilogue, lower_copy, lower_epilogue, lower_group
from argosy_cinn.fusion.products import are_twins
from argosy_cinn.loops.nest import has_partial, partial_dtype
from argosy_cinn.loops.schedule import Kernel, choose_chunks, phases
from argosy_cinn.ordering.kernel import OrderKernel, lower_order
from argosy_cinn.plan.memory import Lifetime, place_apart, plan
from argosy_cinn.plan.overwriting import choose_overwriting
from argosy_cinn.plan.rematerialise import Facts, Schedule, rematerialised, step_cost
from argosy_cinn.plan.streaming import choose_streaming
from argosy_cinn.plan.traffic import body_cost
from argosy_cinn.shapes import has_bytes, nbytes, sizes
from argosy_cinn.store.program_cache import Place, Recomputation
from argosy_pir.core import Operation
from argosy_pir.dims import SymExpr, is_static
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import BlockArgument, OpResult, Value

#: What code is made of.
Body = Kernel | Epilogue | StripKernel | ControlFlow | OrderKernel | FourierKernel | NoteKernel
#: Kernels that nothing is fused into, by operation.
_OWN: dict[str, Callable[[Operation], Body]] = {ORDER: lower_order, FOURIER: lower_fourier, NOTE: lower_note}


@dataclass(eq=False, slots=True)
class Step:
    """One group, lowered to what runs one after the other; nothing for a host call."""

    group: Group
    bodies: list[Body]
    renamed: dict[Hashable, Hashable] = field(default_factory=dict)
    """The versions of values that it reads and makes, where some are made again."""
    repeated: bool = False
    twin: Step | None = None
    """Another product, made by the same read of the operand that both share."""

    @property
    def parts(self) -> list[Step]:
        """Itself and its twin."""
        return [self] if self.twin is None else [self, self.twin]

    def key(self, value: Any) -> Any:
        """What ``value`` is called in the memory plan when this step runs."""
        return self.renamed.get(value, value)


@dataclass(slots=True)
class Plan:
    """Everything that code generation and the executable need.

    The address table holds the arena, the inputs, the states, the outputs, then the ``constants``. Sizes known at run
    time are in ``symbols``: those of the program, then the offset in the arena of each of ``lifetimes``.
    """

    steps: list[Step]
    places: dict[Hashable, Place]
    arena_bytes: int
    constants: list[Value]
    copies: list[tuple[Value, BlockArgument]] = field(default_factory=list)
    in_place: set[Value] = field(default_factory=set)
    lifetimes: list[Lifetime] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    recomputation: Recomputation | None = None
    guard: str = ""

    @property
    def arena_entry(self) -> int:
        """Where the table has the arena's address."""
        return 0


def make_plan(
    memory: Memory,
    fusion: Fusion,
    native: Mapping[Operation, ControlFlow],
    inner: bool = False,
    run_time: str | None = None,
    budget: int | None = None,
    guard: str = "",
) -> Plan:
    """Order the groups, lower them and place all values.

    ``native``: branches and loops that have native code. ``inner``: a region of one of them. ``run_time``: memory is
    planned when sizes are known; the prefix of the names of the offsets. ``budget``: bytes of intermediate values, see
    `rematerialise`. ``guard``: every value has pages of its own, see `argosy_cinn.guard`.
    """
    program = memory.program
    stored = _stored(memory, fusion)
    steps: dict[int, Step] = {}
    for group in fusion.groups.values():
        steps[group.number] = Step(group, _lower(group, memory, stored, native))
    after = {number: {p.number for p in fusion.producers(step.group)} for number, step in steps.items()}
    in_place = _choose_in_place(memory, fusion, steps, after)
    updates = list(zip(program.states, program.state_updates, strict=True))
    changed = [(value, state.argument) for state, value in updates if value is not state.argument]
    copies = [(value, argument) for value, argument in changed if value not in in_place and 0 not in sizes(value)]
    constants: list[Value] = [
        v
        for v in memory.values
        if isinstance(v, OpResult) and v.op.name == "builtin.constant" and v not in fusion.maker
        if is_static(v.shape) or 0 not in v.shape  # what is empty at any size has no data
    ]
    constants += [v for flow in native.values() for v in flow.constants()]
    noted = any(map(_notes, steps.values()))
    entries: list[Hashable] = [*program.block.arguments, *program.outputs, *constants]
    entries += [RECORD] if noted and inner else []  # of the program around it
    places = {key: Place(entry) for entry, key in enumerate(entries, 1)}
    for value, argument in changed:
        if value in in_place:
            places[value] = places[argument]
    ordered = [steps[number] for number in _ordered(fusion, after)]
    apart = run_time is not None or bool(guard)
    over = {} if apart else _overwriting(ordered, _lifetimes(ordered, stored, places, copies), budget)
    if not inner:
        choose_streaming(ordered, stored, in_place | over.keys())
    recomputation = None
    if budget is not None and not over:

        def placed(steps: Sequence[Step]) -> int:
            return plan(_lifetimes(steps, stored, places, copies))[1]

        writers: dict[Value, int] = {
            argument: fusion.maker[value].number for value, argument in changed if value in in_place
        }
        copied = {v for v, _ in copies}
        schedule = _schedule(ordered, stored, places, copied, writers)
        orders = [ordered, schedule.freeing(after)]
        ordered, recomputation = rematerialised(schedule, orders, budget, placed)
    ordered = _with_twins(ordered, in_place)
    lifetimes = _joined(_lifetimes(ordered, stored, places, copies), over)
    if noted and not inner:
        lifetimes.append(Lifetime(RECORD, RECORD_BYTES, 0, len(ordered)))
    places.update((flow.workspace, Place(0)) for flow in native.values() if run_time is not None)
    symbols = list(program.symbols())
    made = Plan(ordered, places, 0, constants, copies, in_place, lifetimes, symbols, recomputation, guard)
    if run_time is not None:
        _place_at_run_time(made, run_time)
    else:
        offsets, made.arena_bytes = place_apart(lifetimes, guard) if guard else plan(lifetimes)
        places.update((key, Place(0, offset)) for key, offset in offsets.items())
    places.update((value, places[first]) for value, first in over.items())
    return made


def _notes(step: Step) -> bool:
    """Whether a step may note an index that is out of range."""
    return any(isinstance(body, NoteKernel) or (isinstance(body, ControlFlow) and body.notes) for body in step.bodies)


def _place_at_run_time(made: Plan, prefix: str) -> None:
    """Offsets follow from sizes: each is a size of its own, which is planned before a call."""
    for i, lifetime in enumerate(made.lifetimes):
        name = lifetime.key if isinstance(lifetime.key, str) else f"_arena{prefix}_{i}"
        made.symbols.append(name)
        made.places[lifetime.key] = Place(0, SymExpr.symbol(name))  # type: ignore[arg-type]


def _stored(memory: Memory, fusion: Fusion) -> set[Value]:
    """Members that must reach memory: outputs, new states, and what another step reads."""
    stored = {v for v in memory.returned if v in fusion.maker}
    for group in fusion.groups.values():
        stored |= {v for v in group.reads if v in fusion.maker}
        if group.kind in ("host", "control"):
            stored |= {v for v in group.members if v in memory.values}
    return stored


def _lower(group: Group, memory: Memory, stored: set[Value], native: Mapping[Operation, ControlFlow]) -> list[Body]:
    if group.kind == "host":
        return []
    if group.region is not None:
        return [lower_region(group.region, memory.values, stored)]
    if group.kind == "control":
        assert group.op is not None
        return [native[group.op]]
    if group.kind == "own":
        assert group.op is not None
        return [_OWN[group.op.name](group.op)]
    if group.kind == "product":
        return [lower_epilogue(group, memory.values, stored)]
    if group.kind == "update":
        assert group.op is not None
        copy = lower_copy(group.op.operand(0), group.op.result, memory.values)
        return [copy, lower_group(group, memory.values, stored)] if group.rows * group.columns else [copy]
    return [lower_group(group, memory.values, stored)]


# -- states in place


def _choose_in_place(memory: Memory, fusion: Fusion, steps: dict[int, Step], after: dict[int, set[int]]) -> set[Value]:
    program = memory.program
    readers: dict[Value, list[Group]] = {}
    for group in fusion.groups.values():
        for value in group.reads:
            readers.setdefault(value, []).append(group)
    chosen: set[Value] = set()
    outputs = set(program.outputs)
    for state, value in zip(program.states, program.state_updates, strict=True):
        argument = state.argument
        maker = fusion.maker.get(value)
        if value is argument or maker is None or maker.kind in ("host", "strips", "own"):
            continue
        if value in outputs or argument in outputs:
            continue
        if not _writes_only_what_it_read(steps[maker.number], argument, value):
            continue
        others = [g for g in readers.get(argument, ()) if g is not maker]
        if any(g.ancestors & maker.bits for g in others) or not allowed("in-place", value):
            continue
        after[maker.number].update(other.number for other in others)
        fusion.put_after(maker, others)
        if maker.kind == "update":
            steps[maker.number].bodies.pop(0)  # no copy is needed
        chosen.add(value)
    return chosen


def _writes_only_what_it_read(step: Step, argument: Value, value: Value) -> bool:
    """Whether the step reads ``argument`` nowhere but at the element of ``value`` that it computes from it."""
    group, body = step.group, step.bodies[-1]
    assert not isinstance(body, (StripKernel, OrderKernel, FourierKernel, NoteKernel))
    if isinstance(body, ControlFlow):
        return False
    if group.kind == "update":
        assert group.op is not None
        read = any(node.kind == "load" and node.payload[0] is argument for node in body.graph.order)
        return group.op.operand(0) is argument and not read and len(step.bodies) == 2
    loads = [node for node in body.graph.order if node.kind == "load" and node.payload[0] is argument]
    product = group.product
    if product is not None and argument in (product.left.buffer, product.right.buffer):
        return False
    if not loads:
        return True
    if isinstance(body, Kernel) and (phases(body) > 1 or body.sequential):
        return False
    written = {s.index for s in body.stores if s.buffer is value}
    return all(node.payload[1] in written for node in loads)


# -- order


def _ordered(fusion: Fusion, after: dict[int, set[int]]) -> list[int]:
    """Groups in an order that respects ``after``, as near to the program's as that allows."""
    waiting = {number: len(before) for number, before in after.items()}
    followers: dict[int, list[int]] = {}
    for number, before in after.items():
        for producer in before:
            followers.setdefault(producer, []).append(number)
    urgency = _urgency(fusion, followers)
    ready = [(urgency[n], n) for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    ordered: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(number)
        for follower in followers.get(number, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (urgency[follower], follower))
    assert len(ordered) == len(after), "groups depend on each other in a circle"
    return ordered


def _urgency(fusion: Fusion, followers: dict[int, list[int]]) -> dict[int, int]:
    """The place of each group in the order: its own, or that of what waits for it, if that is earlier."""
    urgency: dict[int, int] = {}

    def visit(number: int) -> int:
        if number not in urgency:
            urgency[number] = fusion.groups[number].first
            urgency[number] = min([urgency[number], *(visit(f) for f in followers.get(number, ()))])
        return urgency[number]

    for number in fusion.groups:
        visit(number)
    return urgency


def _with_twins(steps: Sequence[Step], in_place: set[Value]) -> list[Step]:
    """Join neighbours that one read of their operand can serve."""
    joined: list[Step] = []
    for step in steps:
        last = joined[-1] if joined else None
        if last is not None and last.twin is None and _may_join(last, step, in_place):
            last.twin = step
        else:
            joined.append(step)
    return joined


def _may_join(first: Step, second: Step, in_place: set[Value]) -> bool:
    """Whether two steps are twins. Their chunks run in any order, so that neither may write what the other reads."""
    x, y = first.group.product, second.group.product
    if x is None or y is None or not are_twins(x, y):
        return False
    members = [*first.group.members, *second.group.members]
    versions = first.renamed or second.renamed or first.repeated or second.repeated
    if versions or in_place & set(members) or second.group.reads & set(first.group.members):
        return False
    return allowed("twins", members[0])


# -- lifetimes


def _lifetimes(
    steps: Sequence[Step],
    stored: set[Value],
    places: Mapping[Hashable, Place],
    copies: list[tuple[Value, BlockArgument]],
) -> list[Lifetime]:
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    bytes_of: dict[Hashable, int] = {}
    found: list[Lifetime] = []
    for i, step in ((i, part) for i, whole in enumerate(steps) for part in whole.parts):
        for value in step.group.reads:
            last[step.key(value)] = i
        for value in step.group.members:
            key = step.key(value)
            if value in stored and key not in places and has_bytes(value):
                first[key] = last[key] = i
                bytes_of[key] = nbytes(value)
        found += [Lifetime(step.key(key), size, i, i) for key, size in _buffers(step).items()]
    for value, _ in copies:
        last[value] = len(steps)
    return [*(Lifetime(key, bytes_of[key], first[key], last[key]) for key in first), *found]


def _overwriting(steps: Sequence[Step], lifetimes: Sequence[Lifetime], budget: int | None) -> dict[Value, Value]:
    """What `choose_overwriting` finds; nothing where a budget is not met by it: what is made again has memory of its
    own."""
    over = choose_overwriting(steps, lifetimes)
    return over if budget is None or plan(_joined(lifetimes, over))[1] <= budget else {}


def _joined(lifetimes: Sequence[Lifetime], over: Mapping[Value, Value]) -> list[Lifetime]:
    """The same, where values that take another's memory only make that one live longer."""
    last: dict[Hashable, int] = {}
    for life in lifetimes:
        key = over.get(life.key, life.key)  # type: ignore[call-overload]
        last[key] = max(life.last, last.get(key, 0))
    return [replace(life, last=last[life.key]) for life in lifetimes if life.key not in over]


def _buffers(step: Step) -> dict[Hashable, int]:
    """Bytes of what a step needs while it runs."""
    found: dict[Hashable, int] = {}
    for body in step.bodies:
        if isinstance(body, StripKernel):
            found.update((StripPartial(s.buffer), body.partial_bytes(s)) for s in body.partial_sinks())
        if isinstance(body, ControlFlow):
            found |= body.buffers()
            found.update(buffer for region in body.regions for buffer in region.run_time_buffers())
        if not isinstance(body, Kernel):
            continue
        chunks = choose_chunks(body).count
        size = body.columns_count * chunks
        for c in body.columns:
            if has_partial(c, chunks):
                found[c.partial] = size * ITEM_SIZES[partial_dtype(c.dtype)]
    return found


# -- a budget


def _schedule(
    steps: Sequence[Step],
    stored: set[Value],
    places: Mapping[Hashable, Place],
    copied: set[Value],
    writers: Mapping[Value, int],
) -> Schedule:
    """What `rematerialise` asks about steps. Host calls and control flow stay as they are, with what they read.
    ``writers``: the group that overwrites a state in place."""
    arena = {v for step in steps for v in step.group.members if v in stored and v not in places and has_bytes(v)}
    kept = copied.union(*(step.group.reads for step in steps if step.group.kind in ("host", "control")))
    facts = {step.group.number: _facts(step, stored, arena, writers) for step in steps}
    return Schedule(steps, facts, arena, kept & arena, writers)


def _facts(step: Step, stored: set[Value], arena: set[Value], writers: Mapping[Value, int]) -> Facts:
    group = step.group
    writes = {v: nbytes(v) for v in group.members if v in stored and has_bytes(v)}
    return Facts(
        tuple(v for v in group.reads if v in arena),
        writes,
        _buffers(step),
        tuple(v for v in group.reads if v in writers),
        group.kind not in ("host", "control") and group.number not in writers.values(),
        step_cost([body_cost(body, group.product) for body in step.bodies]),
    )

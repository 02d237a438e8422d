"""From groups to a plan: the order of steps, what is written over what, and where every value lives.

States are updated in place where that is safe (see `argosy_cinn.plan.state_updates`); others are copied at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from argosy_cinn.attention.unfused import unfused_attention
from argosy_cinn.forms.index_check import RECORD, RECORD_BYTES
from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.kinds import emitter_of
from argosy_cinn.plan.buffer_reuse import choose_overwriting
from argosy_cinn.plan.lifetimes import join_lifetimes, lifetimes_of, merge_lifetimes, whole_of
from argosy_cinn.plan.memory import Lifetime, Place, assign_offsets, place_apart
from argosy_cinn.plan.order import order_groups
from argosy_cinn.plan.rematerialisation import Facts, Schedule, rematerialise, step_cost
from argosy_cinn.plan.repeated_reads import weight_reads
from argosy_cinn.plan.siblings import with_siblings
from argosy_cinn.plan.state_updates import choose_in_place
from argosy_cinn.plan.steps import ExecutionPlan, Step
from argosy_cinn.plan.streaming_stores import choose_streaming
from argosy_cinn.shapes import has_bytes, nbytes, sizes
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr, is_static
from argosy_pir.values import BlockArgument, OpResult, Value


def make_plan(
    memory: Memory,
    fusion: Fusion,
    target: Target,
    inner: bool = False,
    run_time: str | None = None,
    budget: int | None = None,
    guard: str = "",
) -> ExecutionPlan:
    """Order the groups, lower them, schedule them for ``target`` and place all values.

    ``inner``: a region of a branch or loop. ``run_time``: memory is planned when sizes are known; the prefix of the
    names of the offsets. ``budget``: bytes of intermediate values, see `rematerialisation`. ``guard``: every value has
    pages of its own, see `argosy_cinn.guard`.
    """
    stored = _store(memory, fusion)
    steps = {group.number: _make_step(group, memory, stored, target) for group in fusion.groups.values()}
    after = {number: {p.number for p in fusion.producers(step.group)} for number, step in steps.items()}
    in_place = choose_in_place(memory, fusion, steps, after)
    checked = any(step.checks_indices for step in steps.values())
    constants, changed = _constants(memory, fusion), _changed_states(memory)
    places = _entries(memory, constants, changed, in_place, checked and inner)
    copies = [(value, argument) for value, argument in changed if value not in in_place and 0 not in sizes(value)]
    sequence = [steps[number] for number in order_groups(fusion, after)]
    parts = {v: place for group in fusion.groups.values() for v, place in group.kind.places(group).items()}

    def lifetimes_in(steps: Sequence[Step]) -> list[Lifetime]:
        return join_lifetimes(lifetimes_of(steps, stored, places, copies), parts)

    apart = run_time is not None or bool(guard)
    over = {} if apart else _choose_overwriting(sequence, lifetimes_in(sequence), budget)
    if not inner:
        choose_streaming(sequence, stored, in_place | over.keys(), target)
    recomputation = None
    if budget is not None and not over:
        writers: dict[Value, int] = {
            argument: fusion.maker[value].number for value, argument in changed if value in in_place
        }
        schedule = _schedule(sequence, stored, places, {v for v, _ in copies}, writers)
        orders = [sequence, schedule.order_by_memory(after)]
        sequence, recomputation = rematerialise(
            schedule, orders, budget, lambda steps: assign_offsets(lifetimes_in(steps))[1]
        )
    sequence = with_siblings(sequence, in_place)
    lifetimes = merge_lifetimes(lifetimes_in(sequence), over)
    if checked and not inner:
        lifetimes.append(Lifetime(RECORD, RECORD_BYTES, 0, len(sequence)))
    places.update((key, Place(0)) for form in memory.native.values() for key in form.arenas())
    symbols = list(memory.program.symbols())
    made = ExecutionPlan(sequence, places, 0, constants, copies, in_place, lifetimes, symbols, recomputation, guard)
    made.unfused_attention = unfused_attention(memory.program, memory.kinds, memory.regions)
    made.weight_reads = weight_reads(memory.program, constants, sequence, target)
    if run_time is not None:
        _place_at_run_time(made, run_time)
    else:
        offsets, made.arena_bytes = place_apart(lifetimes, guard) if guard else assign_offsets(lifetimes)
        places.update((key, Place(0, offset)) for key, offset in offsets.items())
    places.update((value, places[first]) for value, first in over.items())
    for value in parts:
        whole, start = whole_of(value, parts)
        places[value] = places[whole].advance(start)
    return made


def _make_step(group: Group, memory: Memory, stored: set[Value], target: Target) -> Step:
    """The forms of a group, for which their emitters have chosen what the plan depends on."""
    forms = group.kind.lower(group, memory, stored)
    for form in forms:
        emitter_of(form.kind, target.schedules).schedule(form, target)
    return Step(group, forms)


def _changed_states(memory: Memory) -> list[tuple[Value, BlockArgument]]:
    """New values of states with the arguments that they replace."""
    updates = zip(memory.program.states, memory.program.state_updates, strict=True)
    return [(value, state.argument) for state, value in updates if value is not state.argument]


def _entries(
    memory: Memory,
    constants: Sequence[Value],
    changed: Sequence[tuple[Value, BlockArgument]],
    in_place: set[Value],
    has_record: bool,
) -> dict[Hashable, Place]:
    """The places of the address table's entries after the arena, and of what is written over a state. ``has_record``:
    the record of indices that are out of range is one of the program around this one."""
    entries: list[Hashable] = [*memory.program.block.arguments, *memory.program.outputs, *constants]
    entries += [RECORD] if has_record else []
    places = {key: Place(entry) for entry, key in enumerate(entries, 1)}
    places.update((value, places[argument]) for value, argument in changed if value in in_place)
    return places


def _constants(memory: Memory, fusion: Fusion) -> list[Value]:
    """Values that lie in the program: its own, and those that forms of whole functions bring."""
    own: list[Value] = [
        v
        for v in memory.values
        if isinstance(v, OpResult) and v.op.name == "builtin.constant" and v not in fusion.maker
        if is_static(v.shape) or 0 not in v.shape  # what is empty at any size has no data
    ]
    return own + [v for form in memory.native.values() for v in form.constants()]


def _place_at_run_time(made: ExecutionPlan, prefix: str) -> None:
    """Offsets follow from sizes: each is a size of its own, which is planned before a call."""
    for i, lifetime in enumerate(made.lifetimes):
        name = lifetime.key if isinstance(lifetime.key, str) else f"_arena{prefix}_{i}"
        made.symbols.append(name)
        made.places[lifetime.key] = Place(0, SymExpr.symbol(name))  # type: ignore[arg-type]


def _store(memory: Memory, fusion: Fusion) -> set[Value]:
    """Members that must reach memory: outputs, new states, and what another step reads."""
    stored = {v for v in memory.returned if v in fusion.maker}
    for group in fusion.groups.values():
        stored |= {v for v in group.reads if v in fusion.maker}
        if group.kind.opaque:
            stored |= {v for v in group.members if v in memory.values}
    return stored


def _choose_overwriting(steps: Sequence[Step], lifetimes: Sequence[Lifetime], budget: int | None) -> dict[Value, Value]:
    """What `choose_overwriting` finds; nothing where a budget is not met by it: what is made again has memory of its
    own."""
    over = choose_overwriting(steps, lifetimes)
    return over if budget is None or assign_offsets(merge_lifetimes(lifetimes, over))[1] <= budget else {}


# -- a budget


def _schedule(
    steps: Sequence[Step],
    stored: set[Value],
    places: Mapping[Hashable, Place],
    copied: set[Value],
    writers: Mapping[Value, int],
) -> Schedule:
    """What `rematerialisation` asks about steps. Host calls and control flow stay as they are, with what they read.
    ``writers``: the group that overwrites a state in place."""
    arena = {v for step in steps for v in step.group.members if v in stored and v not in places and has_bytes(v)}
    kept = copied.union(*(step.group.reads for step in steps if step.group.kind.opaque))
    facts = {step.group.number: _facts(step, stored, arena, writers) for step in steps}
    return Schedule(steps, facts, arena, kept & arena, writers)


def _facts(step: Step, stored: set[Value], arena: set[Value], writers: Mapping[Value, int]) -> Facts:
    group = step.group
    writes = {v: nbytes(v) for v in group.members if v in stored and has_bytes(v)}
    return Facts(
        tuple(v for v in group.reads if v in arena),
        writes,
        step.buffers(),
        tuple(v for v in group.reads if v in writers),
        not group.kind.opaque and group.number not in writers.values(),
        step_cost([form.cost() for form in step.forms]),
    )

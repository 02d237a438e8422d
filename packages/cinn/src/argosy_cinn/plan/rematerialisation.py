"""Rematerialisation under a memory budget: values that wait for long are made again where they are read next.

This works on a plan, after fusion: what is repeated is a step, the same code on other buffers. So the bits of the
results cannot change, no code is added to a program, and any step can be repeated, matrix products and fused attention
included: where a budget is tight, what remains of a transformer layer is its input, as if it had been checkpointed.

Greedy, as in Kirisame et al., "Dynamic tensor rematerialization", 2021, with the whole program known: at the step where
most memory is in use, drop the value that is cheapest to make again per byte, with what has to be made for it, until
the plan fits. Then undo, the most expensive first, what turned out not to be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy_cinn.plan.memory import Recomputation
from argosy_cinn.plan.steps import Step
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value

#: Repeated steps that one dropped value may need.
_LONGEST = 64
#: A value this many times smaller than what is dropped is kept for it instead of being made again, too.
_SMALL = 16
_ATTEMPTS = 8
#: What takes less is no reason to run a step later.
_FEW_BYTES = 4096
#: Operations that are done while one byte is moved.
_BYTE = 8


@dataclass(frozen=True, slots=True)
class RepeatedValue:
    """A value, or a buffer of partial results, as the repeated step ``number`` makes it."""

    value: Any
    number: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What a step does to memory: the values in the arena that it ``reads``, and all that it ``writes``, with bytes;
    ``scratch``: buffers of its own; ``overwritten``: states it reads that some step updates in place."""

    reads: tuple[Value, ...]
    writes: Mapping[Value, int]
    scratch: Mapping[Hashable, int]
    overwritten: tuple[Value, ...]
    repeatable: bool
    cost: int


@dataclass(slots=True)
class _Life:
    """One version of a value: where it is made (``uses[0]``) and read, as positions of steps."""

    value: Value
    nbytes: int
    uses: list[int]


class Schedule:
    """Steps in their order, of which some run again. ``kept``: values that other than steps read, which stay."""

    def __init__(
        self, steps: Sequence[Step], facts: Mapping[int, Facts], arena: set[Value], kept: set[Value],
        writers: Mapping[Value, int],
    ) -> None:  # fmt: skip
        self.steps = list(steps)
        self._facts, self._arena, self._kept, self._writers = facts, arena, kept, writers
        self._makers = {value: step for step in steps for value in facts[step.group.number].writes}
        self._count = 0

    @property
    def repeated_steps(self) -> list[Step]:
        """The steps that run again."""
        return [step for step in self.steps if step.repeated]

    def work(self) -> float:
        """What repeated steps cost, as a share of all others."""
        costs = [(step.repeated, self._facts_of(step).cost) for step in self.steps]
        return sum(c for again, c in costs if again) / max(sum(c for again, c in costs if not again), 1)

    def fit(self, limit: int) -> int:
        """Drop values until no step needs more than ``limit`` bytes, or nothing can be dropped; returns the peak."""
        refused: set[Hashable] = set()
        while True:
            lives, needed = self._measure()
            peak = max(needed, default=0)
            if peak <= limit:
                return peak
            found = self._cheapest_drop(lives, needed.index(peak), refused)
            if found is None:
                return peak
            key, chain, at = found
            if not spend("rematerialise", lives[key].value) or not self._drop(chain, at, needed, peak):
                refused.add(key)

    def undo(self, limit: int) -> None:
        """Take repeated steps out again, the most expensive first, as long as no step needs more than ``limit``."""
        for step in sorted(self.repeated_steps, key=lambda s: -self._facts_of(s).cost):
            if not any(s is step for s in self.steps):
                continue  # nobody read it when another one was gone
            before, names = list(self.steps), [s.renamed for s in self.steps]
            self._remove(step)
            if max(self._measure()[1], default=0) > limit:
                self.steps = before
                for s, renamed in zip(before, names, strict=True):
                    s.renamed = renamed

    # -- order

    def order_by_memory(self, after: Mapping[int, set[int]]) -> list[Step]:
        """The steps in another order that ``after`` allows (the numbers of groups that each must follow): what frees
        no less memory than it takes runs as soon as it can."""
        readers: dict[Value, int] = {}
        for step in self.steps:
            for value in self._facts_of(step).reads:
                readers[value] = readers.get(value, 0) + 1
        waiting, ordered = list(self.steps), []
        done: set[int] = set()

        def bytes_taken(step: Step) -> int:
            freed = sum(self._bytes(v) for v in self._facts_of(step).reads if readers[v] == 1 and v not in self._kept)
            return sum(nbytes for _, nbytes in self._in_arena(step)) - freed

        while waiting:
            ready = [step for step in waiting if after[step.group.number] <= done]
            step = min(ready, key=bytes_taken)
            step = step if bytes_taken(step) <= _FEW_BYTES else ready[0]
            waiting.remove(step)
            ordered.append(step)
            done.add(step.group.number)
            for value in self._facts_of(step).reads:
                readers[value] -= 1
        return ordered

    def _bytes(self, value: Value) -> int:
        return self._facts_of(self._makers[value]).writes[value]

    # -- figures

    def _facts_of(self, step: Step) -> Facts:
        return self._facts[step.group.number]

    def _in_arena(self, step: Step) -> Iterator[tuple[Value, int]]:
        """What a step writes to the arena; a repeated one everything."""
        return ((v, n) for v, n in self._facts_of(step).writes.items() if step.repeated or v in self._arena)

    def _measure(self) -> tuple[dict[Hashable, _Life], list[int]]:
        """All lives by key, and the bytes that each step needs."""
        lives: dict[Hashable, _Life] = {}
        change = [0] * (len(self.steps) + 2)
        for i, step in enumerate(self.steps):
            for value in self._facts_of(step).reads:
                lives[step.key(value)].uses.append(i)
            for value, nbytes in self._in_arena(step):
                lives[step.key(value)] = _Life(value, nbytes, [i])
            own = sum(self._facts_of(step).scratch.values())
            change[i] += own
            change[i + 1] -= own
        for key, life in lives.items():
            last = len(self.steps) if key in self._kept else life.uses[-1]
            change[life.uses[0]] += life.nbytes
            change[last + 1] -= life.nbytes
        needed, total = [], 0
        for difference in change[:-1]:
            total += difference
            needed.append(total)
        return lives, needed

    # -- choosing

    def _cheapest_drop(
        self, lives: Mapping[Hashable, _Life], at: int, refused: set[Hashable]
    ) -> tuple[Hashable, list[Value], int] | None:
        """Of the values that wait at a step, the one that costs least per byte: its key, the values to make again in
        order, and before which step."""
        versions: dict[Value, list[_Life]] = {}
        for life in lives.values():
            versions.setdefault(life.value, []).append(life)
        best: tuple[float, Hashable, list[Value], int] | None = None
        for key, life in lives.items():
            waits = life.uses[0] < at < life.uses[-1] and at not in life.uses
            if not waits or life.value in self._kept or key in refused:
                continue
            following = next(u for u in life.uses if u > at)
            chain = self._chain(life, following, versions)
            if chain is not None:
                cost = sum(self._facts[self._makers[v].group.number].cost for v in chain) / max(life.nbytes, 1)
                if best is None or cost < best[0]:
                    best = cost, key, chain, following
        return None if best is None else best[1:]

    def _chain(self, dropped: _Life, at: int, versions: Mapping[Value, list[_Life]]) -> list[Value] | None:
        """The values to make again before step ``at`` to have ``dropped`` there; None where that cannot be."""
        order: dict[Value, None] = {}
        made: set[Value] = set()

        def is_present(value: Value) -> bool:
            lives = [life for life in versions[value] if life is not dropped and life.uses[0] < at]
            small = any(life.nbytes * _SMALL <= dropped.nbytes for life in lives)
            return value in made or small or any(life.uses[-1] >= at for life in lives)

        def make(value: Value) -> bool:
            step = self._makers[value]
            facts = self._facts_of(step)
            if not facts.repeatable or len(order) >= _LONGEST:
                return False
            if any(self._position(self._writers[v]) < at for v in facts.overwritten):
                return False
            for read in facts.reads:
                if not is_present(read) and not make(read):
                    return False
            order[value] = None
            made.update(facts.writes)
            return True

        return list(order) if make(dropped.value) else None

    def _position(self, number: int) -> int:
        return next(i for i, s in enumerate(self.steps) if s.group.number == number and not s.repeated)

    # -- changing

    def _drop(self, chain: Sequence[Value], at: int, needed: Sequence[int], peak: int) -> bool:
        """Make values again before step ``at``; nothing where that needs as much memory as the peak."""
        before, names = list(self.steps), [s.renamed for s in self.steps]
        worst, most = needed.index(peak), sum(n == peak for n in needed)
        for offset, value in enumerate(chain):
            self._repeat(self._makers[value], at + offset)
        now = self._measure()[1]
        added = now[at : at + len(chain)]
        good = now[worst] < peak and max(added) < peak and max(now) <= peak and sum(n == peak for n in now) < most
        if not good:
            self.steps = before
            for step, renamed in zip(before, names, strict=True):
                step.renamed = renamed
        return good

    def _repeat(self, maker: Step, at: int) -> None:
        """Run a step again before step ``at``; what is read from there on is what it makes then."""
        facts, self._count = self._facts_of(maker), self._count + 1
        current = self._versions_at(at)
        renamed: dict[Hashable, Hashable] = {v: current.get(v, v) for v in facts.reads}
        renamed.update((key, RepeatedValue(key, self._count)) for key in (*facts.writes, *facts.scratch))
        again = replace(maker, renamed=renamed, repeated=True)
        for step in self.steps[at:]:
            for value in self._facts_of(step).reads:
                if value in facts.writes and value in self._arena and step.key(value) == current.get(value, value):
                    step.renamed = {**step.renamed, value: renamed[value]}
        self.steps.insert(at, again)

    def _versions_at(self, at: int) -> dict[Value, Hashable]:
        """The latest version of each value before a step."""
        return {v: step.key(v) for step in self.steps[:at] for v, _ in self._in_arena(step)}

    def _remove(self, gone: Step) -> None:
        """Read what was made before instead of what a repeated step makes; and so on for those that nobody reads
        then."""
        at = next(i for i, step in enumerate(self.steps) if step is gone)
        earlier = self._versions_at(at)
        del self.steps[at]
        for value in self._facts_of(gone).writes:
            for step in self.steps:
                if value in self._facts_of(step).reads and step.key(value) == gone.key(value):
                    step.renamed = {**step.renamed, value: earlier.get(value, value)}
        read = {step.key(v) for step in self.steps for v in self._facts_of(step).reads}
        for step in self.repeated_steps:
            if not any(step.key(v) in read for v in self._facts_of(step).writes):
                self._remove(step)
                return


def rematerialise(
    schedule: Schedule, orders: Sequence[Sequence[Step]], budget: int, placed: Callable[[Sequence[Step]], int]
) -> tuple[list[Step], Recomputation | None]:
    """The steps whose plan needs at most ``budget`` bytes, or the least that can be had. The first order is what runs
    without a budget, the others may need less. ``placed``: the bytes of the arena of given steps, which has gaps."""
    before = placed(orders[0])
    if before <= budget:
        return list(orders[0]), None
    # What frees early may be no better before anything is dropped, and much better then.
    tried = [_drop_values(schedule, order, budget, placed) for order in orders]
    best = min(tried, key=lambda made: (max(made.peak, budget), made.work))
    if best.peak >= before:  # nothing that helps can be dropped
        return list(orders[0]), Recomputation(budget, before, 0, 0.0)
    for step, renamed in zip(best.steps, best.names, strict=True):
        step.renamed = renamed
    return best.steps, Recomputation(budget, before, sum(step.repeated for step in best.steps), best.work)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Steps in an order, the versions of values that each reads and makes, the arena they need, and repeated work."""

    steps: list[Step]
    names: list[dict[Hashable, Hashable]]
    peak: int
    work: float


def _drop_values(
    schedule: Schedule, order: Sequence[Step], budget: int, placed: Callable[[Sequence[Step]], int]
) -> _Attempt:
    """Drop what an order allows to be dropped, until its plan fits. Steps are left as they were."""
    schedule.steps = list(order)
    limit = budget
    for _ in range(_ATTEMPTS):
        least = schedule.fit(limit)
        schedule.undo(max(limit, least))
        peak = placed(schedule.steps)
        if peak <= budget or least > limit:
            break
        limit -= max(peak - budget, 1)
    made = _Attempt(schedule.steps, [step.renamed for step in schedule.steps], peak, schedule.work())
    for step in order:
        step.renamed = {}
    return made


def step_cost(costs: Sequence[Any]) -> int:
    """The work of a step's kernels: operations, and bytes in operations."""
    return sum(c.operations + _BYTE * (c.read + c.written) for c in costs)

"""Equal blocks of a program, as equal layers are, partitioned once.

A walk over a block is recorded: what it emitted, and how values lay before and after. A block that does the same, with
what it takes from outside lying alike, gets copies of those operations; nothing is decided or inferred for it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from argosy_autoparallel.broadcast_resharding import broadcast_of
from argosy_autoparallel.operator_rules import ruled_operators
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.value_layouts import ValueLayouts, is_zero
from argosy_pir import Operation, Value
from argosy_pir.repeats import find_repeats

__all__ = ["BlockWalk", "walk_blocks"]

_COUNTER = "counter"
"""The attribute by which equal layers' random numbers differ."""


class BlockWalk(Protocol):
    """The partitioner; ``traffic`` is what it has communicated."""

    emitter: Emitter
    held: dict[Value, ValueLayouts]
    traffic: float

    def walk(self, ops: Iterable[Operation]) -> None:
        """Go on with these operations."""


def walk_blocks(walk: BlockWalk, ops: Sequence[Operation]) -> None:
    """Walk over ``ops``, over equal blocks until one finds values lying as they did for that before."""
    at, kept = 0, {f"phi.{name}" for name in ruled_operators()}
    for run in find_repeats(ops, ignored={_COUNTER}):
        walk.walk(ops[at : run.start])
        record: _Record | None = None
        for block in run.blocks(ops):
            if any(op.regions or op.name in kept for op in block):
                walk.walk(block)
            elif record is None or not record.repeat(block):
                record = _Record(walk, block)
        at = run.stop
    walk.walk(ops[at:])


class _Record:
    """The walk over a block: how values lay ``before`` it and ``after`` it, and what it emitted."""

    def __init__(self, walk: BlockWalk, ops: Sequence[Operation]) -> None:
        self.walk, self.ops = walk, ops
        inside: set[Value] = {x for op in ops for x in op.results}
        outside = dict.fromkeys(_from_outside(ops, inside, walk.held))
        self.before = {x: walk.held[x].copy() for x in outside}
        mark, traffic = walk.emitter.mark(), walk.traffic
        walk.walk(ops)
        self.traffic = walk.traffic - traffic
        self.emission = walk.emitter.emitted_since(mark)
        self.held = {x: walk.held[x] for x in (*outside, *inside)}
        self.after = {x: held.copy() for x, held in self.held.items()}
        self.is_closed = self._is_closed()

    def _is_closed(self) -> bool:
        """Whether what was emitted reads nothing but what was, or what values were before, and can be told apart."""
        sources = [_source(x, held) for x, held in self.before.items()]
        if any(op is not None and _COUNTER in op.attributes for op in sources):
            return False
        if self.emission.token is None and self.emission.end_token is not None:
            return False  # the chain of tokens begins here
        known: set[Value | None] = {x for held in self.before.values() for x in held.versions.values()}
        known |= {x for op in self.emission.ops for x in op.results} | {self.emission.token}
        read: set[Value | None] = {x for op in self.emission.ops for x in op.operands}
        read |= {x for held in self.after.values() for x in held.versions.values()}
        kept = all(self.after[x].versions.keys() >= held.versions.keys() for x, held in self.before.items())
        return kept and read <= known | {None}

    def repeat(self, block: Sequence[Operation]) -> bool:
        """Emit the same for ``block``; False, and nothing done, where it is another or its operands lie otherwise."""
        pairs = _Pairs(self.before, self.walk.held)
        if not self.is_closed or not pairs.match_blocks(self.ops, block):
            return False
        clocks, emitter = pairs.clocks, self.walk.emitter
        first, offset = self.emission.clock + 1, emitter.clock - self.emission.clock
        old = {ready for ready, _ in (*((n.ready, n.after) for n in self.emission.notes), self.emission.terms)}
        if any(ready is not None and ready < first and ready not in clocks for ready in old):
            return False
        clocks |= {clock: clock + offset for clock in range(first, first + len(block))}
        emitter.repeat(self.emission, pairs.locals, clocks, _Renewal(self.ops, block))
        self.walk.traffic += self.traffic
        self._store(pairs, dict(zip(self.ops, block, strict=True)))
        return True

    def _store(self, pairs: _Pairs, ops: dict[Operation, Operation]) -> None:
        """Let the values of the block lie as those of the recorded one did after it; one object stays one."""
        made = {id(self.held[x]): self.walk.held[y] for x, y in pairs.values.items() if x in self.before}
        for x, y in pairs.values.items():
            after, held = self.after[x], made.get(id(self.held[x]))
            if held is None:
                held = made[id(self.held[x])] = after.copy()
                held.op = None if after.op is None else ops.get(after.op, after.op)
                held.versions, held.since = {}, {}
            for layout, local in after.versions.items():
                if layout not in held.versions:
                    held.keep(layout, None if local is None else pairs.locals[local], pairs.clocks[after.since[layout]])
            self.walk.held[y] = held


class _Renewal:
    """What copies of operations have of their own block: places in source, counters of random numbers."""

    def __init__(self, ops: Sequence[Operation], block: Sequence[Operation]) -> None:
        pairs = list(zip(ops, block, strict=True))
        self._locations = {p.location: q.location for p, q in pairs}
        self._counters = {p.attributes[_COUNTER]: q.attributes[_COUNTER] for p, q in pairs if _COUNTER in p.attributes}

    def __call__(self, made: Operation) -> None:
        made.location = self._locations.get(made.location, made.location)
        if made.attributes.get(_COUNTER) in self._counters:
            made.attributes[_COUNTER] = self._counters[made.attributes[_COUNTER]]


class _Pairs:
    """Values of a recorded block with those of another, ``values``; what stands for local values and clocks there."""

    def __init__(self, before: dict[Value, ValueLayouts], held: dict[Value, ValueLayouts]) -> None:
        self._before, self._held = before, held
        self.values: dict[Value, Value] = {}
        self._partners: dict[Value, Value] = {}
        self.locals: dict[Value, Value] = {}
        self.clocks = {-1: -1}

    def match_blocks(self, ops: Sequence[Operation], block: Sequence[Operation]) -> bool:
        """Whether both do the same with operands that lie alike."""
        for p, q in zip(ops, block, strict=True):
            if not _are_alike(p, q) or not all(map(self._match, p.operands, q.operands)):
                return False
            if not all(map(self._pair, p.results, q.results)):
                return False
        return True

    def _pair(self, x: Value, y: Value) -> bool:
        return self.values.setdefault(x, y) is y and self._partners.setdefault(y, x) is x

    def _match(self, x: Value, y: Value) -> bool:
        """Whether ``y`` stands for ``x``, and, of values from outside, lies as that did, with what it is made of."""
        known = x in self.values
        if not self._pair(x, y) or known:
            return not known or self.values[x] is y
        if not self._lie_alike(x, y) or is_zero(x) != is_zero(y):
            return False
        p, q = _source(x, self._before[x]), _source(y, self._held[y])
        if p is None or q is None:
            return p is q
        pairs = [(a, b) for a, b in zip(p.operands, q.operands, strict=False) if a in self._before]
        return (p is q or _are_alike(p, q)) and all(self._match(a, b) for a, b in pairs)

    def _lie_alike(self, x: Value, y: Value) -> bool:
        before, now = self._before[x], self._held[y]
        if (before.primary, before.depth, before.mesh) != (now.primary, now.depth, now.mesh):
            return False
        if before.is_deferred != now.is_deferred or list(before.versions) != list(now.versions):
            return False
        return all(
            self.clocks.setdefault(before.since[layout], now.since[layout]) == now.since[layout]
            and (local is now.versions[layout] if local is None else self._stands(local, now.versions[layout]))
            for layout, local in before.versions.items()
        )

    def _stands(self, local: Value, other: Value | None) -> bool:
        return other is not None and self.locals.setdefault(local, other) is other


def _are_alike(p: Operation, q: Operation) -> bool:
    if p.name != q.name or p.annotations != q.annotations or len(p.operands) != len(q.operands):
        return False
    if [x.type for x in p.results] != [x.type for x in q.results] or p.attributes.keys() != q.attributes.keys():
        return False
    return all(name == _COUNTER or value == q.attributes[name] for name, value in p.attributes.items())


def _source(value: Value, held: ValueLayouts) -> Operation | None:
    """The operation that a value may yet be made by: a deferred one, or a broadcast."""
    return held.op or broadcast_of(value)


def _from_outside(ops: Sequence[Operation], inside: set[Value], held: dict[Value, ValueLayouts]) -> Iterator[Value]:
    """What the operations read that they do not make, and what that may yet be made of."""
    todo = [x for op in ops for x in op.operands]
    seen = set(inside)
    while todo:
        x = todo.pop()
        if x in seen or x not in held:
            continue
        seen.add(x)
        yield x
        source = _source(x, held[x])
        todo += source.operands if source is not None else ()

"""Finding attention in a program of primitives, by its dataflow.

A *score* is a batched product ``[outer..., rows, columns]`` over a short axis. Everything of its shape that is computed
from it element by element, and its reductions along the columns, is followed until a *sink*: a product that contracts
the columns (weights times values) or the rows (gradients of keys and values) again. Where nothing of the scores' shape
leaves this region by another way, it needs no memory: tiles of rows of it are computed in a thread's scratch memory,
again for each group of sinks that can run together (one for the forward sweep, one for the backward sweep).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy_cinn.lowering.classify import INLINE, PRODUCT, REDUCE
from argosy_cinn.shapes import Size, sizes
from argosy_pir.core import Operation
from argosy_pir.effects import is_pure
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

#: The longest axis that a score sums over, the fewest rows and columns worth a kernel of tiles.
_DEEPEST = 256
_FEWEST_ROWS, _FEWEST_COLUMNS = 4, 4
_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(eq=False, slots=True)
class Sink:
    """A product that contracts a value of the scores' shape.

    ``side``: which operand that is; ``along``: ``"columns"`` or ``"rows"``, what is contracted; ``stored``: the value
    that reaches memory, the result or its transpose.
    """

    op: Operation
    side: int
    along: str
    stored: OpResult

    @property
    def weights(self) -> Value:
        """The operand of the scores' shape."""
        return self.op.operand(self.side)

    @property
    def other_operand(self) -> Value:
        """The other operand."""
        return self.op.operand(1 - self.side)


@dataclass(eq=False, slots=True)
class Region:
    """Sinks that run together, with the reductions and scores that they are the first to need."""

    shape: tuple[int, ...]
    sinks: list[Sink]
    reductions: list[Operation] = field(default_factory=list)
    scores: list[Operation] = field(default_factory=list)
    #: Tracked values that depend on one of ``reductions``: they are computed in the kernel, wherever they are read.
    own: set[Value] = field(default_factory=set)

    def members(self) -> list[OpResult]:
        """What the kernel makes."""
        return [*(sink.stored for sink in self.sinks), *(op.result for op in self.reductions)]

    def operations(self) -> set[Operation]:
        """The operations whose results it makes, and those that lead from a sink to what is stored."""
        found = {sink.op for sink in self.sinks} | {sink.stored.op for sink in self.sinks}
        return found | set(self.reductions)


@dataclass(slots=True)
class Regions:
    """All regions of a program; ``inner``: values that never have memory; ``sequence``: the operations in an order in
    which each region is one step, inner operations left out; ``obstacles``: why scores are in no region."""

    regions: list[Region]
    inner: set[Value]
    sequence: list[Operation]
    of: dict[Operation, Region] = field(default_factory=dict)
    obstacles: dict[Operation, str] = field(default_factory=dict)


def find_regions(program: Program, kinds: Mapping[Operation, str]) -> Regions:
    """The regions of a program whose operations have the given kinds."""
    search = _Search(program, kinds)
    regions = [region for part in search.parts() for region in search.split(part)]
    if not regions:
        return Regions([], set(), list(program.block), obstacles=search.obstacles)
    inner = search.inner_of(regions)
    of = {op: region for region in regions for op in region.operations()}
    return Regions(regions, inner, _sequence(program, regions, of, inner, search), of, search.obstacles)


class _Part:
    """A connected set of values that are computed from scores."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.values: list[Value] = []
        self.sinks: list[Sink] = []
        self.reductions: list[Operation] = []
        self.obstacle = ""  # why it is no region


class _Search:
    def __init__(self, program: Program, kinds: Mapping[Operation, str]) -> None:
        self.program, self.kinds = program, kinds
        self.returned = set(program.block.last.operands) if program.block.last is not None else set()
        self.positions = {op: i for i, op in enumerate(program.block)}
        self.parent: dict[Value, Value] = {}
        self.full: set[Value] = set()
        self.rows: set[Value] = set()
        self.scores: set[Operation] = set()
        self.obstacles: dict[Operation, str] = {}
        for op in program.block:
            self._track(op)

    # -- what depends on scores

    def _track(self, op: Operation) -> None:
        if len(op.results) != 1 or op not in self.kinds:
            return
        if is_score(op, self.kinds[op]) and not any(v in self.full for v in op.operands):
            self.scores.add(op)
            self._enter(op.result, (), self.full)
            return
        tracked = [v for v in op.operands if v in self.parent]
        if not tracked:
            return
        shape = sizes(op.result)
        part = sizes(self._root(tracked[0]))
        if self.kinds[op] == REDUCE and tracked[0] in self.full and op.attributes["axes"] == (len(part) - 1,):
            self._enter(op.result, tracked, self.rows)
        elif self.kinds[op] == INLINE and all(sizes(self._root(v)) == part for v in tracked):
            along_rows = all(v in self.rows for v in tracked)
            if shape == part and (_is_pointwise(op) or (along_rows and _repeats_rows(op, part))):
                self._enter(op.result, tracked, self.full)
            elif along_rows and (_is_pointwise(op) or op.name == "prim.reshape"):
                self._enter(op.result, tracked, self.rows)

    def _enter(self, value: Value, sources: Iterable[Value], where: set[Value]) -> None:
        self.parent[value] = value
        where.add(value)
        for source in sources:
            root = self._root(source)
            self.parent[self._root(value)] = root

    def _root(self, value: Value) -> Value:
        while self.parent[value] is not value:
            self.parent[value] = self.parent[self.parent[value]]
            value = self.parent[value]
        return value

    # -- connected parts without other ways out

    def parts(self) -> Iterator[_Part]:
        """The connected parts that nothing of the scores' shape leaves but through sinks."""
        found: dict[Value, _Part] = {}
        for value in self.parent:
            root = self._root(value)
            part = found.setdefault(root, _Part(sizes(root)))
            part.values.append(value)
            if value in self.full:
                self._look_at_users(part, value)
            elif value.op in self.kinds and self.kinds[value.op] == REDUCE:  # type: ignore[attr-defined]
                part.reductions.append(value.op)  # type: ignore[attr-defined]
        for part in found.values():
            if part.obstacle:
                self._note(part, part.obstacle)
        return (p for p in found.values() if not p.obstacle and p.sinks and p.reductions)

    def _note(self, part: _Part, obstacle: str) -> None:
        self.obstacles.update((v.op, obstacle) for v in part.values if v.op in self.scores)  # type: ignore[attr-defined]

    def _look_at_users(self, part: _Part, value: Value) -> None:
        if value in self.returned:
            part.obstacle = "its scores are a result"
        for user in value.users:
            if len(user.results) == 1 and user.result in self.parent and user not in self.scores:
                continue
            sink = self._sink(user, value)
            if sink is None:
                part.obstacle = part.obstacle or f"'{user.name}' reads its scores"
            elif all(sink.op is not s.op for s in part.sinks):
                part.sinks.append(sink)

    def _sink(self, op: Operation, value: Value) -> Sink | None:
        if self.kinds.get(op) != PRODUCT or op.result.dtype not in _DTYPES:
            return None
        inside = [v in self.full for v in op.operands]
        if inside.count(True) != 1:
            return None
        side = inside.index(True)
        batch, contract = _axes(op, side)
        rank = len(sizes(value))
        other_batch, other_contract = _axes(op, 1 - side)
        free = [n for i, n in enumerate(sizes(op.operand(1 - side))) if i not in (*other_batch, *other_contract)]
        if sorted(batch) != list(range(rank - 2)) or len(contract) != 1 or len(free) != 1:
            return None
        if not isinstance(free[0], int):
            return None
        return Sink(op, side, "columns" if contract[0] == rank - 1 else "rows", self._stored_value(op))

    def _stored_value(self, op: Operation) -> OpResult:
        """What is stored for a sink: the result, or its transpose where only that is used."""
        users = list(op.result.users)
        if op.result not in self.returned and len(users) == 1 and users[0].name == "prim.transpose":
            return users[0].result
        return op.result

    # -- groups of sinks that run together

    def split(self, part: _Part) -> list[Region]:
        """The regions of a part, in the order in which they run; none where a reduction would be left over."""
        order = self.positions
        regions: list[Region] = []
        made: set[Value] = set()
        for sink in sorted(part.sinks, key=lambda s: order[s.op]):
            region = regions[-1] if regions else None
            if region is None or self._depends(sink, region):
                region = Region(part.shape, [])
                regions.append(region)
            region.sinks.append(sink)
            self._collect(region, sink.weights, made)
        if any(op.result not in made for op in part.reductions):
            self._note(part, "a reduction of its scores is for others alone")
            return []
        for region in regions:
            region.reductions.sort(key=order.__getitem__)
            region.scores.sort(key=order.__getitem__)
            self._find_own(region, part)
        return regions

    def _depends(self, sink: Sink, region: Region) -> bool:
        """Whether a sink needs, other than through the region's own reductions, what the region makes."""
        goals = {s.op.result for s in region.sinks}
        stack: list[Value] = list(sink.op.operands)
        seen: set[Value] = set(stack)
        first = min(self._position(s.op) for s in region.sinks)
        while stack:
            value = stack.pop()
            if value in goals:
                return True
            if not isinstance(value, OpResult) or self._position(value.op) < first:
                continue
            for v in _inputs(value.op):
                if v not in seen:
                    seen.add(v)
                    stack.append(v)
        return False

    def _position(self, op: Operation) -> int:
        return self.positions.get(op, -1)

    def _collect(self, region: Region, value: Value, made: set[Value]) -> None:
        """Add what a value needs: scores, and reductions that no earlier region makes."""
        stack, seen = [value], {value}
        earlier = made - {op.result for op in region.reductions}
        while stack:
            op = stack.pop().op  # type: ignore[attr-defined]
            if op in self.scores:
                if op not in region.scores:
                    region.scores.append(op)
                continue
            if op.result in earlier:
                continue
            if self.kinds[op] == REDUCE and op not in region.reductions:
                region.reductions.append(op)
                made.add(op.result)
            for v in op.operands:
                if v in self.parent and v not in seen:
                    seen.add(v)
                    stack.append(v)

    def _find_own(self, region: Region, part: _Part) -> None:
        region.own = {op.result for op in region.reductions}
        for value in part.values:
            if value not in region.own and any(v in region.own for v in value.op.operands):  # type: ignore[attr-defined]
                region.own.add(value)

    def inner_of(self, regions: list[Region]) -> set[Value]:
        """The values of the scores' shape in all regions' parts, masks and random bits that only they read, and
        results that are stored transposed."""
        roots = {self._root(region.scores[0].result) for region in regions}
        inner = {v for v in self.full if self._root(v) in roots}
        shapes = {region.shape for region in regions}
        for op in reversed(list(self.program.block)):
            if self.kinds.get(op) == INLINE and sizes(op.result) in shapes and op.result not in self.returned:
                users = op.result.users  # a score contracts its operands: they are matrices in memory, of any shape
                if users and all(u.results and u.results[0] in inner and u not in self.scores for u in users):
                    inner.add(op.result)
        return inner | {s.op.result for r in regions for s in r.sinks if s.stored is not s.op.result}


def is_score(op: Operation, kind: str) -> bool:
    """Whether an operation is a batched product over a short axis, rows from the left and columns from the right."""
    return kind == PRODUCT and not score_obstacle(op)


def score_obstacle(op: Operation) -> str:
    """Why the result of a product is not computed by tiles of rows; empty where it may be."""
    if not op.result.dtype == op.operand(0).dtype == op.operand(1).dtype or op.result.dtype not in _DTYPES:
        return f"scores of {op.operand(0).dtype} in {op.result.dtype} have no tiles"
    batch, contract = _axes(op, 0)
    left, right = sizes(op.operand(0)), sizes(op.operand(1))
    shape = sizes(op.result)
    if len(contract) != 1 or not batch or len(left) != len(batch) + 2 or len(right) != len(batch) + 2:
        return "its scores are not one matrix for each of a batch"
    depth = left[contract[0]]
    if not isinstance(depth, int) or not 0 < depth <= _DEEPEST:
        return f"its heads are of {depth} numbers, not of a known length up to {_DEEPEST}"
    large = _may_reach(shape[-2], _FEWEST_ROWS) and _may_reach(shape[-1], _FEWEST_COLUMNS) and 0 not in shape
    return "" if large else "its scores are few"


def _may_reach(size: Size, least: int) -> bool:
    """Whether a size is at least so large, or is known at run time only."""
    return not isinstance(size, int) or size >= least


def _axes(op: Operation, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    name = "rhs" if side else "lhs"
    return op.attributes[f"{name}_batch"], op.attributes[f"{name}_contract"]


_MOVING = frozenset({
    "broadcast", "reshape", "transpose", "slice", "reverse", "pad", "concat", "gather", "dynamic_slice",
    "dynamic_update_slice", "iota", "dim_size", "rng_bits", "patches", "bitcast",
})  # fmt: skip


def _is_pointwise(op: Operation) -> bool:
    """Whether element i of the result depends on elements i of the operands."""
    return op.dialect == "prim" and op.kind not in _MOVING


def _repeats_rows(op: Operation, shape: tuple[int, ...]) -> bool:
    """Whether an operation repeats a value for each row along the columns."""
    if op.name != "prim.broadcast":
        return False
    pairs = zip(op.attributes["axes"], sizes(op.operand(0)), strict=True)
    return [(axis, n) for axis, n in pairs if n != 1] == [(i, n) for i, n in enumerate(shape[:-1]) if n != 1]


def _inputs(op: Operation) -> list[Value]:
    if not op.regions:
        return list(op.operands)
    return [v for inner in op.walk() for v in inner.operands]


def _sequence(
    program: Program, regions: list[Region], of: dict[Operation, Region], inner: set[Value], search: _Search
) -> list[Operation]:
    """The program's operations with each region's operations one after the other."""
    operations = [op for op in program.block if not (op.results and op.results[0] in inner and op not in of)]
    position = {op: i for i, op in enumerate(operations)}
    nodes: dict[Operation | Region, list[Operation]] = {}
    for op in operations:
        nodes.setdefault(of.get(op, op), []).append(op)
    needs = {node: _needs(node, of, inner, search) for node in nodes}
    _keep_effects(program, operations, needs)
    first = {node: position[ops[0]] for node, ops in nodes.items()}
    for region in regions:  # where its first sink stands: what needs only a reduction waits for it
        first[region] = min(position[s.op] for s in region.sinks)
    sequence = [op for node in _order(needs, first) for op in nodes[node]]
    if len(sequence) != len(operations):
        raise RuntimeError("fused attention made the program's order a circle")
    return sequence


def _keep_effects(
    program: Program, operations: list[Operation], needs: dict[Operation | Region, set[Operation | Region]]
) -> None:
    """Operations with effects stay in their order, and the terminator the last."""
    last = program.block.last
    before: Operation | None = None
    for op in operations:
        if op is not last and not is_pure(op):
            if before is not None:
                needs[op].add(before)
            before = op
    if last is not None:
        needs[last] |= needs.keys() - {last}


def _order(
    needs: dict[Operation | Region, set[Operation | Region]], first: dict[Operation | Region, int]
) -> Iterator[Operation | Region]:
    """Nodes after all they need, else by their place in the program (Kahn's algorithm)."""
    followers: dict[Operation | Region, list[Operation | Region]] = {}
    for node, required in needs.items():
        for other in required:
            followers.setdefault(other, []).append(node)
    waiting = {node: len(required) for node, required in needs.items()}
    by_position = {place: node for node, place in first.items()}
    ready = [first[node] for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    while ready:
        node = by_position[heapq.heappop(ready)]
        yield node
        for follower in followers.get(node, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, first[follower])


def _needs(
    node: Operation | Region, of: dict[Operation, Region], inner: set[Value], search: _Search
) -> set[Operation | Region]:
    """The nodes that must run before one: makers of its operands, through values that never have memory."""
    if isinstance(node, Region):
        stack = [v for s in node.sinks for v in s.op.operands] + [op.operand(0) for op in node.reductions]
        through = node.own
    else:
        stack, through = _inputs(node), set()
    found: set[Operation | Region] = set()
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen or not isinstance(value, OpResult):
            continue
        seen.add(value)
        maker = of.get(value.op, value.op)
        if maker is node:
            continue
        if value in through or (value in inner and value.op not in of):
            stack += value.op.operands
        elif value.op.parent is search.program.block:
            found.add(maker)
    return found

"""From primitives to expressions: the value of a tensor at a position, pulled through everything that is not in memory.

`Lowering.value(v, position)` is a load where ``v`` is in memory; otherwise the expression of its primitive over the
values of its operands at the positions that the primitive reads. Views only change positions. What may be pulled is
said by `is_inline`.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import takewhile
from typing import Any

from argosy_cinn.dialect import KEPT, PATCHES, window_axes
from argosy_cinn.forms.dtypes import PARTS
from argosy_cinn.forms.elementwise import supports
from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.indices import Index, Lookup, Position, atom_index, delinearise, divide, linearise
from argosy_cinn.shapes import sizes, surely_at_least, surely_less
from argosy_pir.core import Operation
from argosy_pir.scalars import encode_scalar
from argosy_pir.values import OpResult, Value


class NotAligned(Exception):
    """A kernel would need an element of a tensor before it has computed it."""


#: Gives the expression of a value that is computed in the same kernel, or None where it is to be loaded or pulled.
Resolve = Callable[[Value, Position], "Expression | None"]


class ElementLowering:
    """Expressions of one kernel. ``in_memory`` holds the values that have a buffer; ``resolve`` answers for values of
    the kernel itself."""

    def __init__(self, graph: Graph, in_memory: Container[Value], resolve: Resolve, split: bool) -> None:
        self.graph, self.in_memory, self.resolve, self.split = graph, in_memory, resolve, split
        self._memo: dict[Any, Expression] = {}
        self.immediates = True  # whether splat constants in memory are used as numbers all the same
        self.guards: tuple[Expression, ...] = ()

    def position(self, value: Value, flat: Index) -> Position:
        """The element of ``value`` at a row-major position."""
        return Position(sizes(value), flat, None, self.split)

    def value(self, value: Value, position: Position) -> Expression:
        """The expression of an element."""
        constant = splat_constant(value)
        if constant is not None and (self.immediates or value not in self.in_memory):
            return self.constant(constant, value.dtype)
        if 0 in sizes(value):  # a loop that runs never: there is no element, nor a position of one
            return self.constant(encode_scalar(0, value.dtype), value.dtype)
        key = (value, position.flat_index.key, self.guards)
        found = self._memo.get(key)
        if found is None:
            found = self.resolve(value, position)
            if found is None:
                loaded = value in self.in_memory
                found = self._load(value, position) if loaded else self.operation(value, position)
            self._memo[key] = found
        return found

    def _load(self, value: Value, position: Position) -> Expression:
        if value.dtype not in PARTS:
            return self.graph.load(value, position.flat_index, value.dtype, self.guards)
        first, part = position.flat_index * 2, PARTS[value.dtype]
        return self.pair(value.dtype, *(self.graph.load(value, first + i, part, self.guards) for i in (0, 1)))

    def constant(self, data: bytes, dtype: str) -> Expression:
        """The number whose bytes are ``data``."""
        if dtype not in PARTS:
            return self.graph.node("constant", dtype, (), data)
        half = len(data) // 2
        return self.pair(dtype, *(self.graph.node("constant", PARTS[dtype], (), d) for d in (data[:half], data[half:])))

    def pair(self, dtype: str, re: Expression, im: Expression) -> Expression:
        """A complex number, which no register holds: what reads and stores it asks for its parts."""
        return self.graph.node("complex", dtype, (re, im))

    def choose(self, condition: Expression, x: Expression, y: Expression) -> Expression:
        """``x`` where the condition holds, else ``y``."""
        if x.dtype in PARTS:
            return self.pair(
                x.dtype, *(self.choose(condition, a, b) for a, b in zip(x.arguments, y.arguments, strict=True))
            )
        return self.graph.node("select", x.dtype, (condition, x, y), ())

    def operation(self, value: Value, position: Position) -> Expression:
        """The expression of the primitive that makes ``value``."""
        assert isinstance(value, OpResult)
        rule = _RULES.get(value.op.name)
        if rule is not None:
            return rule(self, value.op, position)
        arguments = [
            self.value(v, position.with_shape(sizes(v), position._flat, position._coordinates))
            for v in value.op.operands
        ]
        payload = tuple(sorted(value.op.attributes.items()))
        return self.graph.node(value.op.kind, value.dtype, arguments, payload)

    def guard_value(self, conditions: list[Expression], value: Value, position: Position) -> Expression:
        """An element that exists only where the conditions hold."""
        saved = self.guards
        self.guards = (*saved, *(c for c in conditions if c not in saved))
        result = self.value(value, position)
        self.guards = saved
        return result

    def lookup(self, value: Value, position: Position, extent: int) -> Index:
        """A run-time integer, clamped into ``range(extent)``, as an index."""
        if extent == 1:
            return Index(())
        return atom_index(Lookup(self.value(value, position), extent))

    def _compare(self, kind: str, x: Expression, number: int) -> Expression:
        constant = (
            self.graph.node("constant", "int64", (), number.to_bytes(8, "little", signed=True))
            if isinstance(number, int)
            else self.graph.index(Index((), number), "int64")
        )
        return self.graph.node(kind, "bool", (x, constant), ())

    def all(self, conditions: list[Expression]) -> Expression | None:
        """The conjunction, or None for no condition."""
        result: Expression | None = None
        for condition in conditions:
            result = condition if result is None else self.graph.node("logical_and", "bool", (result, condition), ())
        return result


def splat_constant(value: Value) -> bytes | None:
    """The bytes of the one element that a constant repeats, or None."""
    if isinstance(value, OpResult) and value.op.name == "builtin.constant":
        dense = value.op.attributes["value"]
        if dense.is_splat:
            return bytes(dense.data)
    return None


def is_inline(op: Operation) -> bool:
    """Whether the operation can be computed element by element inside its users' loops."""
    name = op.kind
    if op.name in _RULES:
        return all(supports("copy", v.dtype) for v in (*op.operands, *op.results))
    if op.dialect != "prim":
        return False
    return len(op.results) == 1 and all(supports(name, v.dtype) for v in (*op.operands, op.results[0]))


def _broadcast(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x = op.operand(0)
    axes, shape = op.attributes["axes"], position.shape
    kept = [(axis, n) for axis, n in zip(axes, sizes(x), strict=True) if n != 1]
    rank = len(kept)
    if [(i, shape[i]) for i in range(rank)] == kept:  # leading axes: drop the rest at once
        coordinates = None
        flat = _leading_index(position, rank)
        return self.value(x, position.with_shape(sizes(x), flat, coordinates))
    where = position.coordinates
    chosen = tuple(where[axis] if n != 1 else Index(()) for axis, n in zip(axes, sizes(x), strict=True))
    return self.value(x, position.with_shape(sizes(x), None, chosen))


def _leading_index(position: Position, rank: int) -> Index:
    if position._coordinates is not None:
        return linearise(position._coordinates[:rank], position.shape[:rank])
    inner = 1
    for n in position.shape[rank:]:
        inner *= n
    return divide(position.flat_index, inner, position.split)[0]


def _reshape(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x = op.operand(0)
    if position._coordinates is None:
        return self.value(x, position.with_shape(sizes(x), position.flat_index))
    # What is beyond an axis (of an image, under a condition) must not be taken for a place on another one.
    kept = _equal_suffix(sizes(x), position.shape)
    if not kept:
        return self.value(x, position.with_shape(sizes(x), position.flat_index))
    first = linearise(position._coordinates[:-kept], position.shape[:-kept])
    outer = delinearise(first, sizes(x)[:-kept], position.split)
    return self.value(x, position.with_shape(sizes(x), None, (*outer, *position._coordinates[-kept:])))


def _equal_suffix(x: tuple[int, ...], y: tuple[int, ...]) -> int:
    """How many last axes of two shapes are the same."""
    pairs = zip(reversed(x), reversed(y), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _transpose(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, permutation = op.operand(0), op.attributes["permutation"]
    where = position.coordinates
    chosen = [Index(())] * len(permutation)
    for i, axis in enumerate(permutation):
        chosen[axis] = where[i]
    return self.value(x, position.with_shape(sizes(x), None, tuple(chosen)))


def _slice(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, a = op.operand(0), op.attributes
    where = [i * step + lo for i, lo, step in zip(position.coordinates, a["start"], a["stride"], strict=True)]
    return self.value(x, position.with_shape(sizes(x), None, tuple(where)))


def _reverse(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, axes = op.operand(0), op.attributes["axes"]
    where = [i * -1 + (sizes(x)[axis] - 1) if axis in axes else i for axis, i in enumerate(position.coordinates)]
    return self.value(x, position.with_shape(sizes(x), None, tuple(where)))


def _pad(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, fill = op.operands
    a = op.attributes
    filled = self.value(fill, position.with_shape((), Index(())))
    if 0 in sizes(x):
        return filled
    conditions: list[Expression] = []
    where = [
        _without_gaps(self, i + -low, n, gap, position.split, conditions)
        for i, n, low, gap in zip(position.coordinates, sizes(x), a["low"], a["interior"], strict=True)
    ]
    return _choose(self, x, position.with_shape(sizes(x), None, tuple(where)), conditions, filled)


def _without_gaps(
    self: ElementLowering, i: Index, n: int, gap: int, split: bool, conditions: list[Expression]
) -> Index:
    """The index among ``n`` elements that lie ``gap`` elements apart from each other; what must hold for there to be
    one is added to ``conditions``."""
    found = [self.graph.bounds_check(i, 0, (n - 1) * (gap + 1) + 1)]
    if gap:
        # Lifted to be positive, so that quotient and remainder are those of non-negative numbers.
        lift = 0 if surely_at_least(i.low, 0) else -(i.low // (gap + 1))
        i, rest = divide(i + lift * (gap + 1), gap + 1, split)
        i = i + -lift
        found.append(self.graph.bounds_check(rest, 0, 1))
    conditions += [c for c in found if c is not None]
    return i


def _choose(
    self: ElementLowering, x: Value, position: Position, conditions: list[Expression], otherwise: Expression
) -> Expression:
    """An element of ``x`` where the conditions hold."""
    inside = self.guard_value(conditions, x, position)
    condition = self.all(conditions)
    return inside if condition is None else self.choose(condition, inside, otherwise)


def _patches(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x = op.operand(0)
    n, group, channel, *rest = position.coordinates
    axes = window_axes(op)
    window, spatial = rest[: len(axes)], rest[len(axes) :]
    conditions: list[Expression] = []
    where = [n, group * position.shape[2] + channel]
    for size, k, s, (stride, low, spread, dilation) in zip(sizes(x)[2:], window, spatial, axes, strict=True):
        i = s * stride + k * dilation + -low
        where.append(_without_gaps(self, i, size, spread - 1, position.split, conditions))
    zero = self.constant(encode_scalar(0, x.dtype), x.dtype)
    return _choose(self, x, position.with_shape(sizes(x), None, tuple(where)), conditions, zero)


def _concat(self: ElementLowering, op: Operation, position: Position) -> Expression:
    axis = op.attributes["axis"]
    where = position.coordinates
    result: Expression | None = None
    end = position.shape[axis]
    for x in reversed(op.operands):
        start, stop = end - sizes(x)[axis], end
        end = start
        at = where[axis]
        if start == stop or surely_less(at.high, start) or surely_at_least(at.low, stop):
            continue
        condition = self.graph.bounds_check(at, start, stop)
        shifted = position.with_shape(sizes(x), None, (*where[:axis], at + -start, *where[axis + 1 :]))
        piece = self.guard_value([condition] if condition is not None else [], x, shifted)
        if condition is None or result is None:
            result = piece
        else:
            result = self.choose(condition, piece, result)
    if result is None:  # of parts without elements nothing is read
        return self.constant(encode_scalar(0, op.operand(0).dtype), op.operand(0).dtype)
    return result


def _iota(self: ElementLowering, op: Operation, position: Position) -> Expression:
    return self.graph.index(position.coordinates[op.attributes["axis"]], op.attributes["dtype"])


def _dim_size(self: ElementLowering, op: Operation, position: Position) -> Expression:
    return self.graph.index(Index((), op.attributes["dim"]), op.attributes["dtype"])


def _gather(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, indices = op.operands
    axes, batch = op.attributes["axes"], op.attributes["batch"]
    where = position.coordinates
    outer = len(sizes(indices)) - 1
    rest = iter(where[outer:])
    chosen: list[Index] = []
    for axis, n in enumerate(sizes(x)):
        if axis < batch:
            chosen.append(where[axis])
        elif axis in axes:
            component = Index((), axes.index(axis))
            chosen.append(
                self.lookup(indices, position.with_shape(sizes(indices), None, (*where[:outer], component)), n)
            )
        else:
            chosen.append(next(rest))
    return self.value(x, position.with_shape(sizes(x), None, tuple(chosen)))


def _starts(self: ElementLowering, position: Position, starts: tuple[Value, ...], room: list[int]) -> list[Index]:
    return [self.lookup(s, position.with_shape((), Index(())), n + 1) for s, n in zip(starts, room, strict=True)]


def _dynamic_slice(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, *starts = op.operands
    room = [n - size for n, size in zip(sizes(x), op.attributes["sizes"], strict=True)]
    first = _starts(self, position, tuple(starts), room)
    where = tuple(i + s for i, s in zip(position.coordinates, first, strict=True))
    return self.value(x, position.with_shape(sizes(x), None, where))


def scatter_position(
    self: ElementLowering, op: Operation, position: Position
) -> tuple[Expression, Position, Expression | None]:
    """What a scatter or dynamic_update_slice writes for the element of its updates at ``position``: value, position in
    the result, and the condition under which it does."""
    if op.name == "prim.dynamic_update_slice":
        x, update, *starts = op.operands
        first = _starts(self, position, tuple(starts), [n - m for n, m in zip(sizes(x), sizes(update), strict=True)])
        where = tuple(i + s for i, s in zip(position.coordinates, first, strict=True))
        return self.value(update, position), position.with_shape(sizes(x), None, where), None
    x, indices, updates = op.operands
    axes, batch = op.attributes["axes"], op.attributes["batch"]
    outer = len(sizes(indices)) - 1
    coordinates = position.coordinates
    rest = iter(coordinates[outer:])
    conditions, chosen = [], []
    for axis, n in enumerate(sizes(x)):
        if axis in axes:
            place = position.with_shape(sizes(indices), None, (*coordinates[:outer], Index((), axes.index(axis))))
            wide = self.graph.node("cast", "int64", (self.value(indices, place),), (("dtype", "int64"),))
            conditions += [self._compare("ge", wide, 0), self._compare("lt", wide, n)]
            chosen.append(atom_index(Lookup(wide, n)))
        else:
            chosen.append(coordinates[axis] if axis < batch else next(rest))
    return self.value(updates, position), position.with_shape(sizes(x), None, tuple(chosen)), self.all(conditions)


def _dynamic_update_slice(self: ElementLowering, op: Operation, position: Position) -> Expression:
    x, update, *starts = op.operands
    room = [n - size for n, size in zip(sizes(x), sizes(update), strict=True)]
    outside = self.value(x, position)
    if 0 in sizes(update):
        return outside
    first = _starts(self, position, tuple(starts), room)
    where = [i + s * -1 for i, s in zip(position.coordinates, first, strict=True)]
    found = [self.graph.bounds_check(i, 0, n) for i, n in zip(where, sizes(update), strict=True)]
    conditions = [c for c in found if c is not None]
    inside = self.guard_value(conditions, update, position.with_shape(sizes(update), None, tuple(where)))
    condition = self.all(conditions)
    return inside if condition is None else self.choose(condition, inside, outside)


def _rng_bits(self: ElementLowering, op: Operation, position: Position) -> Expression:
    state = op.operand(0)
    seed, offset = (self.value(state, position.with_shape((2,), Index((), i))) for i in (0, 1))
    where = position.flat_index
    whole = op.attributes.get("whole", ())
    if whole:  # a block of a larger draw
        moved = tuple(c + s for c, s in zip(position.coordinates, op.attributes["start"], strict=True))
        where = position.with_shape(whole, None, moved).flat_index
    return self.graph.random(where, op.attributes["counter"], seed, offset)


def _lower_complex(self: ElementLowering, op: Operation, position: Position) -> Expression:
    re, im = (self.value(v, position) for v in op.operands)
    return self.pair(op.result.dtype, re, im)


def _lower_real(self: ElementLowering, op: Operation, position: Position) -> Expression:
    return self.value(op.operand(0), position).arguments[0]


def _imag(self: ElementLowering, op: Operation, position: Position) -> Expression:
    return self.value(op.operand(0), position).arguments[1]


def _forward_operand(self: ElementLowering, op: Operation, position: Position) -> Expression:
    return self.value(op.operand(0), position)


_RULES: dict[str, Callable[[ElementLowering, Operation, Position], Expression]] = {
    "prim.broadcast": _broadcast,
    "prim.reshape": _reshape,
    "prim.transpose": _transpose,
    "prim.slice": _slice,
    "prim.reverse": _reverse,
    "prim.pad": _pad,
    "prim.concat": _concat,
    "prim.iota": _iota,
    "prim.dim_size": _dim_size,
    "prim.gather": _gather,
    "prim.dynamic_slice": _dynamic_slice,
    "prim.dynamic_update_slice": _dynamic_update_slice,
    "prim.rng_bits": _rng_bits,
    PATCHES: _patches,
    KEPT: _forward_operand,
    "prim.complex": _lower_complex,
    "prim.real": _lower_real,
    "prim.imag": _imag,
    "prim.copy": _forward_operand,
    "prim.stop_gradient": _forward_operand,
}

VIEWS = frozenset({"broadcast", "reshape", "transpose", "slice", "reverse", "copy", "stop_gradient", "real", "imag"})

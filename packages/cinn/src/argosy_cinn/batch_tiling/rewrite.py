"""Operations on the rows of a large batch become a loop over blocks of rows.

What lies between the products of a network, forward and back, is as long as the batch, and larger than any cache: each
product reads it from main memory and writes it back. A block of rows goes through all operations while it stays near,
and sums over rows (gradients of weights) are carried from block to block. Loops over tiles of the outermost common
axis of fused operations are the idea of Alwani et al., "Fused-layer CNN accelerators", MICRO 2016.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy_cinn.batch_tiling.rows import RowWise
from argosy_cinn.rewrites.builders import splat_of
from argosy_cinn.shapes import count, sizes
from argosy_phi_ops import prim
from argosy_phi_ops.checks.index_errors import CHECK
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Operation, Region
from argosy_pir.effects import is_pure
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.types import ITEM_SIZES, TensorType
from argosy_pir.values import OpResult, Value

#: Rows of a block: products of fewer do not fill their tiles, and the loop itself has a cost.
_LEAST, _MOST = 128, 4096
#: Of stacks, whose products have as many rows for each, fewer do: one, where thousands of coefficients are stacked.
_FEWEST = 1
#: How much of what products read and write a block may have, in sizes of the second cache; a part of it is alive at a
#: time. An eighth of this was measured to be as good on one thread; more rows mean fewer meetings of several threads.
_NEAR = 8.0
#: So many values alive at a time, or sums over rows (gradients, for which values are kept), gain from blocks. A chain
#: of layers alone does not: it reads each value once, while the next one is computed.
_MANY = 6
#: A loop reads what has no rows again for each block: this much of what it keeps near at most.
_AGAIN = 0.5


@register_pass("batch-tiling")
@dataclass(frozen=True)
class BatchTiling(Pass):
    """Lets a simplified program go through its largest batch in blocks of rows where that saves traffic;
    ``cache_bytes``: of the cache that blocks are made for, the second one."""

    cache_bytes: int = 1 << 20

    def run(self, program: Program) -> bool:
        """Make one loop, or none; True where there is one."""
        block, budget = program.block, _NEAR * self.cache_bytes
        sources = [] if program.symbols() else _sources(program)
        if not (sources and all(is_pure(op) for op in block if op is not block.last and op.name != CHECK)):
            return False
        reach = _reach(program)
        for source in sources:
            if reach[sizes(source)[0]] <= 2 * budget:
                continue
            rows = RowWise(program, source, 0)
            size = _block_rows(rows, budget)
            if size is not None and spend("batch-tiling", source):
                _rewrite(program, rows, size)
                return True
        return False


def _sources(program: Program) -> list[Value]:
    """Tensors that may be batches: inputs and unchanged states with many rows, the largest batch first."""
    fixed = {s.argument for s, new in zip(program.states, program.state_updates, strict=True) if s.argument is new}
    inputs = [v for v in (*program.inputs, *fixed) if isinstance(v.type, TensorType) and v.shape]
    return sorted((v for v in inputs if sizes(v)[0] >= 2 * _LEAST), key=lambda v: -sizes(v)[0])


# -- gain


def _reach(program: Program) -> Counter[int]:
    """The most that products could move for rows of each number, which tells without a look at every operation for
    every source that there is nothing to gain."""
    products = [op for op in program.block if op.name == "prim.dot_general"]
    values = {v for op in products for v in (*op.operands, op.result)}
    found: Counter[int] = Counter()
    for value in values:
        for size in set(sizes(value)):
            found[size] += _bytes(value)
    return found


def _block_rows(rows: RowWise, budget: float) -> int | None:
    """How many rows a block should have; None where blocks save nothing."""
    moved = _move(rows)
    near = sum(map(_bytes, moved))
    row = near / rows.size
    if near <= 2 * budget or not (rows.totals or _peak_values(rows, moved) >= _MANY):
        return None
    size = min(_MOST, 1 << (max(int(budget / row), 1).bit_length() - 1))
    least = max(_LEAST // max(map(rows.copies, moved)), _FEWEST)
    blocks = rows.size // max(size, 1)
    again = sum(map(_bytes, rows.outer_operands())) + 2 * sum(map(_bytes, rows.totals))
    extra = blocks * again + 2 * sum(map(_bytes, rows.escaping_values()))
    return size if size >= least and blocks >= 2 and extra <= _AGAIN * near else None


def _move(rows: RowWise) -> set[Value]:
    """What blocks make and products read and write."""
    made = {op.result for op in rows.steps}
    products = [op for op in rows.steps if op.name == "prim.dot_general"]
    found = {v for op in products for v in (*op.operands, op.result) if v in rows.axes and v in made}
    return {v for v in found if not _is_converted(rows, v)}


def _is_converted(rows: RowWise, value: Value) -> bool:
    """Whether a product computes the value from single narrower elements as it reads those (quantised weights)."""
    source = value
    while source not in rows.given and isinstance(source, OpResult):
        read = [v for v in source.op.operands if splat_of(v) is None]
        if PRIMITIVES[source.op.kind].category != "elementwise" or len(read) != 1:
            return False
        (source,) = read
    return source in rows.given and ITEM_SIZES[source.dtype] < ITEM_SIZES[value.dtype]


def _peak_values(rows: RowWise, moved: set[Value]) -> int:
    """How many of these values are there at a time, at most; one that stacks several counts as so many."""
    last = {v: i for i, op in enumerate(rows.steps) for v in op.operands if v in moved}
    ends: Counter[int] = Counter()
    for value, i in last.items():
        ends[i] += rows.copies(value)
    alive = most = 0
    for i, op in enumerate(rows.steps):
        alive += rows.copies(op.result) if op.result in last else 0
        most = max(most, alive)
        alive -= ends[i]
    return most


def _bytes(value: Value) -> int:
    return count(value) * ITEM_SIZES[value.dtype]


# -- the loop


def _rewrite(program: Program, rows: RowWise, size: int) -> None:
    """A loop over whole blocks; rows that are left over come first, and their sums are what it starts from."""
    last = program.block.last
    assert last is not None
    for op in rows.late:
        op.move_before(last)
    builder = Builder.before(rows.late[0] if rows.late else last)
    blocks, rest = divmod(rows.size, size)
    with emit_at(builder):
        ends = {v: _part(v, rows.axes[v], blocks * size, rows.size) for v in rows.given} if rest else {}
        ended = _clone(builder, rows, ends, rest) if rest else {}
        start = [ended[v] if rest else _zeros(builder, v) for v in rows.totals]
        slices = [_blocks_of(v, rows.axes[v], blocks, size) for v in rows.given]
        region = _region(rows, slices, size)
        made = builder.create("control.scan", (*slices, *start), {"inputs": len(slices)}, regions=(region,)).results
        left = rows.escaping_values()
        whole = [_join(y, v, rows, ended.get(v)) for v, y in zip(left, made, strict=False)]
    _replace(rows, dict(zip([*left, *rows.totals], [*whole, *made[len(left) :]], strict=True)))


def _replace(rows: RowWise, found: Mapping[Value, Value]) -> None:
    """Let everything but the operations on rows read what the loop has made."""
    steps = set(rows.steps)
    for old, new in found.items():
        for user, index in list(old.uses):
            if user not in steps:
                user.set_operand(index, new)


def _region(rows: RowWise, slices: Sequence[Value], size: int) -> Region:
    """The body: the rows of a block, and the sums so far."""
    types = [TensorType(v.shape[1:], v.dtype) for v in slices]
    block = Block([*types, *(v.type for v in rows.totals)])
    builder = Builder.at_end(block)
    with emit_at(builder):
        given = {
            v: _move_axis(a, 0, rows.axes[v]) for v, a in zip(rows.given, block.arguments, strict=False)
        }  # fmt: skip
        made = _clone(builder, rows, given, size)
        sums = [prim.add(old, made[v]) for old, v in zip(block.arguments[len(slices) :], rows.totals, strict=True)]
        yields = [_move_axis(made[v], rows.axes[v], 0) for v in rows.escaping_values()]
    block.append(Operation("control.yield", [*yields, *sums]))
    region = Region()
    region.append(block)
    return region


def _clone(builder: Builder, rows: RowWise, given: Mapping[Value, Value], size: int) -> dict[Value, Value]:
    """The operations on rows for ``size`` of them."""
    made = dict(given)
    for value in rows.axes:
        if rows.is_number(value):
            made[value] = _resized_constant(builder, value, rows.axes[value], size)
    for op in rows.steps:
        types, attributes = [_resize(op.result, rows, size)], dict(op.attributes)
        if "shape" in attributes:
            attributes["shape"] = types[0].shape
        if op.name == "prim.slice":
            attributes["limit"] = _replace_at(attributes["limit"], rows.axes[op.result], size)
        operands = [made.get(v, v) for v in op.operands]
        _check(op, operands, attributes, types)
        made[op.result] = builder.create(op.name, operands, attributes, types, location=op.location).result
    return made


def _check(op: Operation, operands: Sequence[Value], attributes: Mapping[str, object], types: list[TensorType]) -> None:
    known = PRIMITIVES[op.kind]
    found = known.infer([v.type for v in operands], {k: v for k, v in attributes.items() if k in known.attributes})
    assert list(found) == types, f"{op.name} of a block of rows: {found}, expected {types}"


def _resize(value: Value, rows: RowWise, size: int) -> TensorType:
    type = value.type
    assert isinstance(type, TensorType)
    return type if value in rows.totals else TensorType(_replace_at(type.shape, rows.axes[value], size), type.dtype)


def _replace_at(numbers: Sequence[Any], place: int, number: int) -> tuple[Any, ...]:
    return (*numbers[:place], number, *numbers[place + 1 :])


# -- values of rows, and blocks of them


def _resized_constant(builder: Builder, value: Value, axis: int, size: int) -> Value:
    type = TensorType(_replace_at(value.shape, axis, size), value.dtype)
    data = value.op.attributes["value"].data  # type: ignore[attr-defined]
    return builder.create("builtin.constant", (), {"value": Dense(type, data)}, (type,)).result


def _zeros(builder: Builder, value: Value) -> Value:
    type = value.type
    assert isinstance(type, TensorType)
    zero = Dense(type, bytes(ITEM_SIZES[type.dtype]))
    return builder.create("builtin.constant", (), {"value": zero}, (type,)).result


def _part(value: Value, axis: int, start: int, limit: int) -> Value:
    """Rows from ``start`` to ``limit``."""
    rank = len(value.shape)
    found: Value = prim.slice(
        value,
        start=_replace_at((0,) * rank, axis, start),
        limit=_replace_at(value.shape, axis, limit),
        stride=(1,) * rank,
    )
    return found


def _blocks_of(value: Value, axis: int, blocks: int, size: int) -> Value:
    """``[blocks, size, ...]``, the rows first."""
    if blocks * size != value.shape[axis]:
        value = _part(value, axis, 0, blocks * size)
    value = _move_axis(value, axis, 0)
    found: Value = prim.reshape(value, shape=(blocks, size, *value.shape[1:]))
    return found


def _join(stacked: Value, value: Value, rows: RowWise, rest: Value | None) -> Value:
    """What was made block by block as one value, with the rows that were left over."""
    axis = rows.axes[value]
    blocks, size, *others = sizes(stacked)
    whole = _move_axis(prim.reshape(stacked, shape=(blocks * size, *others)), 0, axis)
    found: Value = whole if rest is None else prim.concat(whole, rest, axis=axis)
    return found


def _move_axis(value: Value, start: int, end: int) -> Value:
    if start == end:
        return value
    order = [i for i in range(len(value.shape)) if i != start]
    order.insert(end, start)
    found: Value = prim.transpose(value, permutation=tuple(order))
    return found


__all__ = ["BatchTiling"]

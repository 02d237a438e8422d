"""Program-level simplification: one forward sweep that folds and commons operations, then removal of dead ones.

What remains is in a normal form that fusion relies on: no identities (reshape to the same shape, cast to the same
dtype, copies), no chains of reshapes or transposes, broadcasts without axes of size one, powers with small constant
exponents as products, reductions over no elements as constants, calls inlined.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from argosy_cinn.convolution import as_product
from argosy_cinn.fuel import allowed
from argosy_cinn.fusion.classify import reduction_layout
from argosy_cinn.loops.elementwise import DTYPES, FLOATS
from argosy_cinn.shapes import count
from argosy_phi_ops.context import building
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.attributes import Dense, attributes_key
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Operation
from argosy_pir.dialect import get_definition
from argosy_pir.opdef import EFFECT
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import BlockArgument, OpResult, Value

Rule = Callable[[Operation], "Value | None"]


def simplify(program: Program) -> None:
    """Simplify ``program`` in place."""
    inline_calls(program)
    remove_dead(program.block)
    _sweep(program.block)
    remove_dead(program.block)


def inline_calls(program: Program) -> None:
    """Replace calls by the bodies of the functions they call."""
    calls = [op for op in program.walk() if op.name == "builtin.call"]
    while calls:
        for call in calls:
            if call.parent is None:
                continue
            block = program.functions[call.attributes["callee"].name].block
            mapping: dict[Value, Value] = dict(zip(block.arguments, call.operands, strict=True))
            terminator = block.last
            assert terminator is not None
            for op in block:
                if op is not terminator:
                    call.parent.insert_before(call, op.clone(mapping))
            call.replace_with([mapping.get(v, v) for v in terminator.operands])
        calls = [op for op in program.region.walk() if op.name == "builtin.call"]
    program.functions.clear()


def remove_dead(block: Block) -> None:
    """Erase operations without effect whose results nobody uses."""
    for op in reversed(list(block)):
        if op.results and not any(r.has_uses for r in op.results) and not has_effect(op):
            op.erase()


def has_effect(op: Operation) -> bool:
    """Whether the order of the operation matters, or that of one inside it."""
    definition = get_definition(op.name)
    if definition is None or EFFECT in definition.traits:
        return True
    return any(has_effect(inner) for region in op.regions for inner in region.walk() if inner.results)


def _sweep(block: Block) -> None:
    seen: dict[Any, Operation] = {}
    for op in list(block):
        if op.parent is not block:
            continue
        for made in _rewritten(op):
            _common(made, seen)


def _rewritten(op: Operation) -> list[Operation]:
    """Apply rules until none does anything; the operations that now stand for ``op`` and are new."""
    if op.dialect != "prim" or not op.results or not all(isinstance(r.type, TensorType) for r in op.results):
        return [op] if op.name == "builtin.constant" else []
    fresh: list[Operation] = []
    builder = Builder.before(op)
    with building(builder):
        previous = op.previous
        replacement = _apply(op)
        if replacement is None:
            return [op]
        new = previous.next if previous is not None else op.parent.first  # type: ignore[union-attr]
        while new is not None and new is not op:
            following = new.next
            fresh.append(new)
            new = following
    op.replace_with([replacement])
    return [made for o in fresh if o.parent is not None for made in _rewritten(o)]


def _apply(op: Operation) -> Value | None:
    name = op.name[5:]
    if len(op.results) != 1:
        return None
    for rule in (_fold_constants, _RULES.get(name), _empty_reduction):
        result = rule(op) if rule is not None else None
        if result is not None:  # what a refused rule has built is dead, and removed at the end
            return result if allowed(f"rewrite.{name}", op) else None
    return None


def _common(op: Operation, seen: dict[Any, Operation]) -> None:
    if op.parent is None or op.regions or has_effect(op):
        return
    attributes = {k: v for k, v in op.attributes.items() if k != "phase"}
    if op.name == "builtin.constant":
        value = attributes["value"]
        key: Any = (op.name, value.type, value.data)
    else:
        operands = [id(v) for v in op.operands]
        if op.name in _COMMUTATIVE:
            operands.sort()
        key = (op.name, *operands, attributes_key(attributes))
    first = seen.setdefault(key, op)
    if first is not op and allowed("common", op):
        op.replace_with(list(first.results))


_COMMUTATIVE = frozenset({"prim.add", "prim.mul"})


# -- constants


def splat_of(value: Value) -> Any:
    """The number that a splat constant repeats, as a numpy scalar; None for other values."""
    if not isinstance(value, OpResult):
        return None
    if value.op.name == "prim.broadcast":
        return splat_of(value.op.operand(0))
    if value.op.name != "builtin.constant":
        return None
    dense = value.op.attributes["value"]
    return np.frombuffer(dense.data, numpy_dtype(dense.type.dtype))[0] if dense.is_splat else None


def _result_type(op: Operation) -> TensorType:
    type = op.result.type
    assert isinstance(type, TensorType)
    return type


def _constant(number: Any, type: TensorType) -> Value:
    data = b"" if 0 in type.shape else np.asarray(number, numpy_dtype(type.dtype)).tobytes()
    builder = _ambient()
    return builder.create("builtin.constant", (), {"value": Dense(type, data)}, (type,)).result


def _ambient() -> Builder:
    from argosy_phi_ops.context import context

    builder = context().builder
    assert builder is not None
    return builder


_FOLDABLE = frozenset(name for name, p in PRIMITIVES.items() if p.category == "elementwise") | {
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "reverse",
}


def _fold_constants(op: Operation) -> Value | None:
    """Elementwise and layout operations of splat constants are splat constants."""
    name = op.name[5:]
    if name not in _FOLDABLE or not op.operands:
        return None
    numbers = [splat_of(v) for v in op.operands]
    if any(n is None for n in numbers):
        return None
    type = _result_type(op)
    if PRIMITIVES[name].category != "elementwise":
        return _constant(numbers[0], type)
    attributes = {k: v for k, v in op.attributes.items() if k != "phase"}
    folded = kernel_for(name)(*[np.asarray(n) for n in numbers], **attributes)
    return _constant(folded, type)


# -- identities


def _emit(name: str, *operands: Value, **attributes: Any) -> Value:
    result: Value = PRIMITIVES[name](*operands, **attributes)
    return result


def _defined_by(value: Value, name: str) -> Operation | None:
    return value.op if isinstance(value, OpResult) and value.op.name == name else None


def _reshape(op: Operation) -> Value | None:
    x = op.operand(0)
    if x.shape == op.result.shape:
        return x
    inner = _defined_by(x, "prim.reshape")
    return _emit("reshape", inner.operand(0), shape=op.result.shape) if inner is not None else None


def _transpose(op: Operation) -> Value | None:
    x, permutation = op.operand(0), op.attributes["permutation"]
    if list(permutation) == sorted(permutation):
        return x
    inner = _defined_by(x, "prim.transpose")
    if inner is not None:
        first = inner.attributes["permutation"]
        return _emit("transpose", inner.operand(0), permutation=tuple(first[i] for i in permutation))
    moved = [i for i in permutation if x.shape[i] != 1]
    return _emit("reshape", x, shape=op.result.shape) if moved == sorted(moved) else None


def _broadcast(op: Operation) -> Value | None:
    x, shape, axes = op.operand(0), op.attributes["shape"], op.attributes["axes"]
    if x.shape == tuple(shape):
        return x
    inner = _defined_by(x, "prim.broadcast")
    if inner is not None:
        through = tuple(axes[a] for a in inner.attributes["axes"])
        return _emit("broadcast", inner.operand(0), shape=shape, axes=through)
    if 1 in x.shape:
        kept = [(n, a) for n, a in zip(x.shape, axes, strict=True) if n != 1]
        thin = _emit("reshape", x, shape=tuple(n for n, _ in kept))
        return _emit("broadcast", thin, shape=shape, axes=tuple(a for _, a in kept))
    if prod(x.shape) == prod(shape):
        return _emit("reshape", x, shape=shape)
    return None


def _slice(op: Operation) -> Value | None:
    return op.operand(0) if op.operand(0).shape == op.result.shape else None


def _reverse(op: Operation) -> Value | None:
    x = op.operand(0)
    return x if all(x.shape[a] == 1 for a in op.attributes["axes"]) else None


def _pad(op: Operation) -> Value | None:
    a = op.attributes
    nothing = all(v == 0 for v in (*a["low"], *a["high"], *a["interior"]))
    if 0 in op.operand(0).shape and not nothing:
        return _emit("broadcast", op.operand(1), shape=op.result.shape, axes=())
    return op.operand(0) if nothing else None


def _concat(op: Operation) -> Value | None:
    axis = op.attributes["axis"]
    kept = [x for x in op.operands if x.shape[axis] != 0]
    if len(kept) == 1:
        return kept[0]
    return _emit("concat", *kept, axis=axis) if kept and len(kept) < len(op.operands) else None


def _same(op: Operation) -> Value | None:
    return op.operand(0)


def _cast(op: Operation) -> Value | None:
    x = op.operand(0)
    if x.dtype == op.result.dtype:
        return x
    inner = _defined_by(x, "prim.cast")
    if inner is None:
        return None
    source = inner.operand(0)
    exact = (source.dtype, x.dtype) in _EXACT_CASTS or source.dtype == "bool"
    return _emit("cast", source, dtype=op.result.dtype) if exact and x.dtype != "bool" else None


_EXACT_CASTS = frozenset({
    ("bfloat16", "float32"), ("float16", "float32"), ("bfloat16", "float64"), ("float16", "float64"),
    ("float32", "float64"),
    ("int32", "int64"), ("int32", "float64"),
})  # fmt: skip


def _add(op: Operation) -> Value | None:
    x, y = op.operands
    if _is(y, 0):
        return x
    return y if _is(x, 0) else None


def _sub(op: Operation) -> Value | None:
    return op.operand(0) if _is(op.operand(1), 0) else None


def _mul(op: Operation) -> Value | None:
    x, y = op.operands
    if _is(y, 1):
        return x
    if _is(x, 1):
        return y
    if _is(y, -1):
        return _emit("neg", x)
    return _emit("neg", y) if _is(x, -1) else None


def _div(op: Operation) -> Value | None:
    x, y = op.operands
    if _is(y, 1):
        return x
    number = splat_of(y)
    if number is None or y.dtype not in ("float32", "float64"):
        return None
    mantissa, exponent = np.frexp(number)
    if abs(mantissa) == 0.5 and abs(int(exponent)) < 100:  # a power of two: the reciprocal is exact
        return _emit("mul", x, _constant(1 / number, TensorType(y.shape, y.dtype)))
    return None


def _pow(op: Operation) -> Value | None:
    x, y = op.operands
    number = splat_of(y)
    if number is None or x.dtype not in ("float32", "float64"):
        return None
    if number == 0:
        return _constant(1, _result_type(op))
    if number == 0.5 or number != int(number) or abs(int(number)) > 4:
        return None
    power = x
    for _ in range(abs(int(number)) - 1):
        power = _emit("mul", power, x)
    return power if number > 0 else _emit("div", _constant(1, _result_type(op)), power)


def _neg(op: Operation) -> Value | None:
    inner = _defined_by(op.operand(0), "prim.neg")
    return inner.operand(0) if inner is not None else None


_WRITE = "prim.dynamic_update_slice"


def _select(op: Operation) -> Value | None:
    condition, x, y = op.operands
    chosen = splat_of(condition)
    if chosen is not None:
        return x if chosen else y
    return x if x is y else _block_written(op)


def _block_written(op: Operation) -> Value | None:
    """A selection between a small padded block and an argument is a write into the argument, which may be in place:
    what assigning to a slice of a state (a cache of keys) becomes."""
    mask, block = (_defined_by(v, "prim.pad") for v in op.operands[:2])
    x = op.operand(2)
    if mask is None or block is None or not (isinstance(x, BlockArgument) or _defined_by(x, _WRITE)):
        return None
    update, place = block.operand(0), block.attributes
    same = all(mask.attributes[name] == place[name] for name in ("low", "high", "interior"))
    edges = (*place["low"], *place["high"])
    known = all(isinstance(n, int) for n in (*x.shape, *update.shape, *edges))
    if not same or not known or any(place["interior"]) or min(edges, default=0) < 0:
        return None
    inside, outside = splat_of(mask.operand(0)), splat_of(mask.operand(1))
    if outside is None or outside or not inside or 4 * count(update) > count(x) or 0 in update.shape:
        return None
    starts = [_constant(n, TensorType((), "int64")) for n in place["low"]]
    return _emit("dynamic_update_slice", x, update, *starts)


def _is(value: Value, number: int) -> bool:
    found = splat_of(value)
    return found is not None and bool(found == number)


def _reduce(op: Operation) -> Value | None:
    """Axes of size one are dropped; interleaved reduced axes are brought together by a transpose."""
    x, axes = op.operand(0), op.attributes["axes"]
    if not axes:
        return x
    if any(x.shape[a] == 1 for a in axes):
        kept = tuple(a for a in axes if x.shape[a] != 1)
        if not kept:
            return _emit("reshape", x, shape=op.result.shape)
        thin = tuple(n for i, n in enumerate(x.shape) if not (i in axes and n == 1))
        names = [i for i, n in enumerate(x.shape) if not (i in axes and n == 1)]
        reduced = _emit(op.name[5:], _emit("reshape", x, shape=thin), axes=tuple(names.index(a) for a in kept))
        return reduced
    if x.dtype in DTYPES and reduction_layout(op) is None:
        kept = tuple(i for i in range(len(x.shape)) if i not in axes)
        gathered = _emit("transpose", x, permutation=(*kept, *sorted(axes)))
        return _emit(op.name[5:], gathered, axes=tuple(range(len(kept), len(x.shape))))
    return None


def _empty_reduction(op: Operation) -> Value | None:
    name = op.name[5:]
    if not name.startswith("reduce_") or 0 not in op.operand(0).shape or 0 in op.result.shape:
        return None
    from argosy_phi_ops.reference.kernels.registry import numpy_dtype as dtype_of

    empty = np.empty((0,), dtype_of(op.result.dtype))
    return _constant(kernel_for(name)(empty, axes=(0,)), _result_type(op))


def _argument(op: Operation) -> Value | None:
    """The first place of an extreme is the least position that holds it; a NaN is an extreme."""
    x, axis, dtype = op.operand(0), op.attributes["axis"], op.attributes["dtype"]
    n = x.shape[axis]
    if x.dtype not in DTYPES or n == 0 or not isinstance(n, int):
        return None
    kept = tuple(i for i in range(len(x.shape)) if i != axis)
    extreme = _emit("reduce_max" if op.name == "prim.argmax" else "reduce_min", x, axes=(axis,))
    found = _emit("eq", x, _emit("broadcast", extreme, shape=x.shape, axes=kept))
    if x.dtype in FLOATS:
        found = _emit("logical_or", found, _emit("is_nan", x))
    place = _emit("iota", shape=x.shape, axis=axis, dtype="int64")
    beyond = _constant(n, TensorType(x.shape, "int64"))
    return _emit("cast", _emit("reduce_min", _emit("select", found, place, beyond), axes=(axis,)), dtype=dtype)


def _dot(op: Operation) -> Value | None:
    """A sum of no products is zero; a product with a constant is a scaled sum."""
    lhs = op.operand(0)
    empty = any(lhs.shape[axis] == 0 for axis in op.attributes["lhs_contract"])
    if empty and 0 not in op.result.shape:
        return _constant(0, _result_type(op))
    for index, side in ((0, "lhs"), (1, "rhs")):
        number = splat_of(op.operand(1 - index))
        if number is not None and np.isfinite(number):
            return _scaled_sum(op, index, number, side)
    return None


def _scaled_sum(op: Operation, index: int, number: Any, side: str) -> Value | None:
    """The product of a tensor with a constant: its sums, scaled and repeated along the constant's free axes."""
    x, result = op.operand(index), _result_type(op)
    batch, contracted = op.attributes[f"{side}_batch"], op.attributes[f"{side}_contract"]
    if x.dtype not in ("float32", "float64") or result.dtype != x.dtype or 0 in x.shape:
        return None
    free = [i for i in range(len(x.shape)) if i not in batch and i not in contracted]
    ordered = _emit("transpose", x, permutation=(*batch, *free, *contracted))
    kept = len(batch) + len(free)
    total = _emit("reduce_sum", ordered, axes=tuple(range(kept, len(x.shape)))) if contracted else ordered
    scaled = _emit("mul", total, _constant(number, TensorType(total.shape, x.dtype)))
    first = len(result.shape) - len(free) if side == "rhs" else len(batch)
    axes = (*range(len(batch)), *range(first, first + len(free)))
    return _emit("broadcast", scaled, shape=result.shape, axes=axes)


def _scatter(op: Operation) -> Value | None:
    """One update for each batch element is a selection by comparing positions."""
    x, indices, updates = op.operands
    axes, batch, kind = op.attributes["axes"], op.attributes["batch"], op.attributes["kind"]
    between = indices.shape[batch:-1]
    if any(n != 1 for n in between) or 0 in x.shape or not all(isinstance(n, int) for n in x.shape):
        return None
    if batch == 0 and count(x) > 1 << 12:
        return None  # one update of a large tensor: writing the rest again costs more
    condition: Value | None = None
    for k, axis in enumerate(axes):
        start = (*([0] * (len(indices.shape) - 1)), k)
        limit = (*indices.shape[:-1], k + 1)
        one = _emit("slice", indices, start=start, limit=limit, stride=(1,) * len(start))
        flat = _emit("cast", _emit("reshape", one, shape=indices.shape[:batch]), dtype="int64")
        wide = _emit("broadcast", flat, shape=x.shape, axes=tuple(range(batch)))
        hit = _emit("eq", _emit("iota", shape=x.shape, axis=axis, dtype="int64"), wide)
        condition = hit if condition is None else _emit("logical_and", condition, hit)
    assert condition is not None
    rest = [i for i in range(batch, len(x.shape)) if i not in axes]
    shape = (*x.shape[:batch], *(x.shape[i] for i in rest))
    spread = _emit("broadcast", _emit("reshape", updates, shape=shape), shape=x.shape, axes=(*range(batch), *rest))
    combine = {"set": None, "add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[kind]
    return _emit("select", condition, spread if combine is None else _emit(combine, x, spread), x)


_RULES: dict[str, Rule] = {
    "reshape": _reshape, "transpose": _transpose, "broadcast": _broadcast, "slice": _slice, "reverse": _reverse,
    "pad": _pad, "concat": _concat, "copy": _same, "stop_gradient": _same, "cast": _cast, "add": _add, "sub": _sub,
    "mul": _mul, "div": _div, "pow": _pow, "neg": _neg, "select": _select, "scatter": _scatter, "dot_general": _dot,
    "argmax": _argument, "argmin": _argument, "conv": as_product,
    **{f"reduce_{kind}": _reduce for kind in ("sum", "prod", "max", "min", "and", "or")},
}  # fmt: skip

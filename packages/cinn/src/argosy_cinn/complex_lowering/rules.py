"""One rule per primitive: an operation on complex numbers as operations on their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_cinn.complex_lowering.functions import BINARY, UNARY, Pair, is_complex, modulus, multiply, number
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value

#: The results of an operation in terms of parts; None where there is no code for it.
Rule = Callable[[Operation], "Sequence[Value] | None"]


def parts(value: Value) -> Pair:
    """Real and imaginary part of a value; a real one has zeros for the second."""
    if not is_complex(value):
        return value, number(value, 0.0)
    if isinstance(value, OpResult) and value.op.name == "prim.complex":
        return value.op.operands[0], value.op.operands[1]
    return prim.real(value), prim.imag(value)


def _join(z: Pair) -> list[Value]:
    return [prim.complex(*z)]


def _rebuild(op: Operation, operands: Sequence[Value]) -> Value:
    """The same primitive on other operands."""
    result: Value = PRIMITIVES[op.kind](*operands, **op.attributes)
    return result


def _by_part(op: Operation) -> list[Value]:
    """Operations that move, choose or add numbers do so with either part."""
    both = [parts(v) if is_complex(v) else (v, v) for v in op.operands]
    return _join((_rebuild(op, [p[0] for p in both]), _rebuild(op, [p[1] for p in both])))


def _scatter(op: Operation) -> list[Value] | None:
    return _by_part(op) if op.attributes["kind"] in ("set", "add") else None


def _bilinear(op: Operation) -> list[Value]:
    """A product or convolution: four of real numbers."""
    (a, b), (c, d) = map(parts, op.operands)
    accumulate = op.attributes.get("accumulate")
    changed = {"accumulate": REAL_OF[accumulate]} if accumulate else {}

    def product(x: Value, y: Value) -> Value:
        result: Value = PRIMITIVES[op.kind](x, y, **{**op.attributes, **changed})
        return result

    return _join((prim.sub(product(a, c), product(b, d)), prim.add(product(a, d), product(b, c))))


def _unary(name: str) -> Rule:
    return lambda op: _join(UNARY[name](parts(op.operand(0))))


def _binary(name: str) -> Rule:
    return lambda op: _join(BINARY[name](parts(op.operand(0)), parts(op.operand(1))))


def _either(op: Operation) -> list[Value]:
    """What holds of a number as soon as it holds of a part."""
    return [prim.logical_or(*(_rebuild(op, [p]) for p in parts(op.operand(0))))]


def _is_finite(op: Operation) -> list[Value]:
    return [prim.logical_and(*(_rebuild(op, [p]) for p in parts(op.operand(0))))]


def _equality(op: Operation) -> list[Value]:
    (a, b), (c, d) = map(parts, op.operands)
    if op.name == "prim.eq":
        return [prim.logical_and(prim.eq(a, c), prim.eq(b, d))]
    return [prim.logical_or(prim.ne(a, c), prim.ne(b, d))]


def _cast(op: Operation) -> list[Value]:
    x, dtype = op.operand(0), op.attributes["dtype"]
    re, im = parts(x) if is_complex(x) else (x, None)
    if dtype in REAL_OF:
        part = prim.cast(re, dtype=REAL_OF[dtype])
        return _join((part, number(part, 0.0) if im is None else prim.cast(im, dtype=REAL_OF[dtype])))
    assert im is not None
    if dtype == "bool":
        return [prim.logical_or(prim.cast(re, dtype=dtype), prim.cast(im, dtype=dtype))]
    return [prim.cast(re, dtype=dtype)]


def _iota(op: Operation) -> list[Value]:
    a = op.attributes
    re = prim.iota(shape=a["shape"], axis=a["axis"], dtype=REAL_OF[a["dtype"]])
    return _join((re, number(re, 0.0)))


def _part(index: int) -> Rule:
    def rule(op: Operation) -> list[Value] | None:
        x = op.operand(0)
        made = isinstance(x, OpResult) and x.op.name == "prim.complex"
        return [parts(x)[index]] if made else None

    return rule


def _reduce_prod(op: Operation) -> list[Value] | None:
    """Halves multiplied with each other until one element is left."""
    axes = op.attributes["axes"]
    x = op.operand(0)
    if any(not isinstance(x.shape[a], int) or x.shape[a] == 0 for a in axes):
        return None
    z = parts(x)
    for axis in sorted(axes, reverse=True):
        while z[0].shape[axis] > 1:
            z = _halve(z, axis)
        z = _map_parts(lambda p: prim.reshape(p, shape=op.result.shape), z) if axis == min(axes) else z
    return _join(z)


def _map_parts(function: Callable[[Value], Value], z: Pair) -> Pair:
    return function(z[0]), function(z[1])


def _cut(x: Value, axis: int, first: Any, last: Any) -> Value:
    start, limit = [0] * len(x.shape), list(x.shape)
    start[axis], limit[axis] = first, last
    result: Value = prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * len(limit))
    return result


def _halve(z: Pair, axis: int) -> Pair:
    """The first half times the second; one element over stays as it is."""
    n: Any = z[0].shape[axis]
    half = n // 2
    product = multiply(
        _map_parts(lambda p: _cut(p, axis, 0, half), z), _map_parts(lambda p: _cut(p, axis, half, 2 * half), z)
    )
    if n % 2 == 0:
        return product
    rest = _map_parts(lambda p: _cut(p, axis, n - 1, n), z)
    return prim.concat(product[0], rest[0], axis=axis), prim.concat(product[1], rest[1], axis=axis)


def _cumulative(op: Operation) -> list[Value] | None:
    """Sums by part; products by doubling (Hillis and Steele, 1986)."""
    kind, axis, backwards = op.attributes["kind"], op.attributes["axis"], op.attributes.get("reverse", False)
    if kind == "sum":
        return _by_part(op)
    n = op.result.shape[axis]
    if kind != "prod" or not isinstance(n, int):
        return None
    z, reach = parts(op.operand(0)), 1
    while reach < n:
        z = multiply(z, (_shift(z[0], axis, reach, backwards, 1.0), _shift(z[1], axis, reach, backwards, 0.0)))
        reach *= 2
    return _join(z)


def _shift(x: Value, axis: int, reach: int, backwards: bool, fill: float) -> Value:
    """``x`` moved along an axis, ``fill`` where it came from."""
    n, zeros = x.shape[axis], [0] * len(x.shape)
    kept = _cut(x, axis, reach, n) if backwards else _cut(x, axis, 0, n - reach)
    moved = list(zeros)
    moved[axis] = reach
    low, high = (zeros, moved) if backwards else (moved, zeros)
    value = prim.constant(fill, x.dtype)
    result: Value = prim.pad(kept, value, low=tuple(low), high=tuple(high), interior=tuple(zeros))
    return result


def _sort(op: Operation) -> list[Value]:
    """By real part, then imaginary part; numbers with a NaN come after others, as numpy has it."""
    operands: list[Value] = []
    keys, ends = 0, []
    for i, x in enumerate(op.operands):
        own = _sorted_parts(x, key=i < op.attributes["keys"]) if is_complex(x) else [x]
        keys += len(own) if i < op.attributes["keys"] else 0
        operands += own
        ends.append(len(operands))
    a = op.attributes
    made: Any = prim.sort(*operands, axis=a["axis"], keys=keys, descending=a.get("descending", False), stable=True)
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    return [
        prim.complex(results[end - 2], results[end - 1]) if is_complex(x) else results[end - 1]
        for x, end in zip(op.operands, ends, strict=True)
    ]


def _sorted_parts(x: Value, key: bool) -> list[Value]:
    re, im = parts(x)
    if not key:
        return [re, im]
    two = prim.mul(prim.cast(prim.is_nan(re), dtype="int8"), prim.constant(2, "int8"))
    return [prim.add(two, prim.cast(prim.is_nan(im), dtype="int8")), re, im]


_MOVES = (
    "reshape", "transpose", "broadcast", "slice", "reverse", "pad", "concat", "gather", "dynamic_slice",
    "dynamic_update_slice", "select", "copy", "stop_gradient", "reduce_sum",
)  # fmt: skip

RULES: dict[str, Rule] = {f"prim.{name}": rule for name, rule in {
    **dict.fromkeys(_MOVES, _by_part),
    **{name: _unary(name) for name in UNARY},
    **{name: _binary(name) for name in BINARY},
    "abs": lambda op: [modulus(parts(op.operand(0)))],
    "real": _part(0), "imag": _part(1), "is_nan": _either, "is_inf": _either,
    "is_finite": _is_finite, "eq": _equality, "ne": _equality, "cast": _cast, "iota": _iota, "scatter": _scatter,
    "dot_general": _bilinear, "conv": _bilinear, "reduce_prod": _reduce_prod, "cumulative": _cumulative,
    "sort": _sort,
}.items()}  # fmt: skip
"""By operation name."""

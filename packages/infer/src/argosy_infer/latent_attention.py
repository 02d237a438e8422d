"""Multi-head latent attention, absorbed: scores and sums are taken of what a token keeps, not of heads made of it.

Where each head's key is made of channels ``c`` that all heads share (``W_h c``) beside others that heads share as they
are (a rotated key ``r``), a score is ``q_h (W_h c) = (q_h W_h) c``; and where its value is ``V_h c``, the attention is
``V_h`` times the sum of the ``c``. So the cache holds ``c`` and ``r`` once a token, for all heads (DeepSeek-AI,
"DeepSeek-V2", 2024, section 2.1). Dataflow finds it: concatenations, slices, broadcasts along heads, and products with
a matrix that does not run along the tokens. Matrices in few bits are taken apart as the floats that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from argosy_infer.weights import apply_operator
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

__all__ = ["LatentAttention", "dequantize_latent_weights", "find_latent_attention", "latent_weights"]


@dataclass(frozen=True)
class _Part:
    """Channels of heads: those from ``start`` on of what every head makes of ``source`` [b, s, l] by ``matrix``
    [l, heads * made] (or turned round), ``width`` of them; or of ``source`` itself where there is no matrix."""

    source: Value
    width: int
    start: int = 0
    matrix: Value | None = None
    is_turned: bool = False
    made: int = 0


@dataclass(frozen=True)
class LatentAttention:
    """Attention whose ``keys`` are parts made of ``latent`` [b, s, l] and parts that heads share, and whose ``values``
    are made of ``latent``, too; ``heads`` in all."""

    latent: Value
    keys: tuple[_Part, ...]
    values: _Part
    heads: int

    @property
    def shared_parts(self) -> tuple[_Part, ...]:
        """Parts of keys that all heads have alike."""
        return tuple(part for part in self.keys if part.matrix is None)

    @property
    def width(self) -> int:
        """Of the latent channels."""
        return _size(self.latent.shape[2])

    def entry(self, value_of: Callable[[Value], Value]) -> Value:
        """What is cached of new tokens [t, 1, l + r], ``value_of`` giving [t, ...] for source values."""
        parts = [value_of(self.latent), *(_channels(value_of(part.source), part) for part in self.shared_parts)]
        whole = prim.concat(*parts, axis=1) if len(parts) > 1 else parts[0]
        return prim.reshape(whole, shape=(whole.shape[0], 1, whole.shape[1]))  # type: ignore[no-any-return]

    def query(self, query: Value, value_of: Callable[[Value], Value]) -> Value:
        """Queries [t, heads, d] as those of what is cached [t, heads, l + r]."""
        at, latent, shared = 0, None, []
        for part in self.keys:
            own = _cut(query, 2, at, part.width)
            at += part.width
            if part.matrix is None:
                shared.append(own)
                continue
            turned = prim.dot_general(
                own, self._matrix(part, value_of), lhs_contract=(2,), rhs_contract=(2,), lhs_batch=(1,), rhs_batch=(0,)
            )
            moved = prim.transpose(turned, permutation=(1, 0, 2))
            latent = moved if latent is None else prim.add(latent, moved)
        return prim.concat(latent, *shared, axis=2) if shared else latent  # type: ignore[return-value]

    def result(self, mixed: Value, value_of: Callable[[Value], Value]) -> Value:
        """Heads' values [t, heads, v] of their sums of latent channels [t, heads, l]."""
        matrix = self._matrix(self.values, value_of)
        made = prim.dot_general(mixed, matrix, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(1,), rhs_batch=(0,))
        return prim.transpose(made, permutation=(1, 0, 2))  # type: ignore[no-any-return]

    def _matrix(self, part: _Part, value_of: Callable[[Value], Value]) -> Value:
        """[heads, l, width] of a part."""
        assert part.matrix is not None  # it is no shared part
        given, sizes = value_of(part.matrix), (self.heads, part.made)
        if part.is_turned:
            apart, order = prim.reshape(given, shape=(*sizes, self.width)), (0, 2, 1)
        else:
            apart, order = prim.reshape(given, shape=(self.width, *sizes)), (1, 0, 2)
        return _cut(prim.transpose(apart, permutation=order), 2, part.start, part.width)


def find_latent_attention(key: Value, value: Value, is_plain: Callable[[Value], bool]) -> LatentAttention | None:
    """The latent attention with these keys and values [b, s, heads, width]; None where there is none, or where the
    heads' own keys and values are no more than what they are made of. ``is_plain`` tells that a value does not run
    along the tokens."""
    keys, values = _parts(key, is_plain), _parts(value, is_plain)
    sources = [part.source for part in (keys or []) + (values or []) if part.matrix is not None]
    if not keys or not values or len(values) != 1 or values[0].matrix is None or len(set(sources)) != 1:
        return None
    if len(sources) < 2:  # keys are no products
        return None
    found = LatentAttention(sources[0], tuple(keys), values[0], _size(key.shape[2]))
    cached = found.width + sum(part.width for part in found.shared_parts)
    return found if cached < found.heads * (_size(key.shape[3]) + _size(value.shape[3])) else None


def latent_weights(program: Program) -> set[str]:
    """The states that heads' keys and values are made of latent channels by. Incremental programs take these matrices
    apart, so they should be floats."""
    plain = program.clone()
    Decompose(keep=("scaled_dot_product_attention",)).run(plain)
    names: dict[Value, str] = {state.argument: state.name for state in plain.states}
    found: set[str] = set()
    for op in plain.walk():
        if op.name == "phi.scaled_dot_product_attention":
            latent = find_latent_attention(op.operand(1), op.operand(2), lambda v: _states_of(v, names) is not None)
            parts = () if latent is None else (*latent.keys, latent.values)
            for part in parts:
                found |= set() if part.matrix is None else _states_of(part.matrix, names) or set()
    return found


def _states_of(value: Value, names: dict[Value, str]) -> set[str] | None:
    """The states that alone make a value; None where something else does, too."""
    if value in names:
        return {names[value]}
    if not isinstance(value, OpResult) or value.op.regions:
        return None
    found: set[str] = set()
    for operand in value.op.operands:
        own = _states_of(operand, names)
        if own is None:
            return None
        found |= own
    return found


def dequantize_latent_weights(program: Program) -> None:
    """Put products with floats in the place of those in few bits by which heads make keys and values of latent
    channels: the weight is dequantised in the program, and incremental programs can take it apart."""
    if all(op.name != "phi.weight_only_linear" for op in program.block):
        return
    trial = program.clone()
    for op in _products_of_few_bits(trial):
        _multiply_floats(op)
    latent, names = latent_weights(trial), {state.argument: state.name for state in program.states}
    for op in _products_of_few_bits(program):
        if names.get(_operands(op)["weight"]) in latent:
            _multiply_floats(op)


def _products_of_few_bits(program: Program) -> list[Operation]:
    """Those of floats, without a bias."""
    found = [op for op in program.block if op.name == "phi.weight_only_linear"]
    return [op for op in found if _operands(op).get("bias") is None and _operands(op)["x"].dtype != "int8"]


def _multiply_floats(op: Operation) -> None:
    given = _operands(op)
    x, scale, offset = given["x"], given["weight_scale"], given.get("weight_offset")
    algo, group_size = f"weight_only_{given['weight_dtype']}", given["group_size"]
    algo = algo if given["weight_dtype"] == "int4" else "weight_only_int8"
    with emit_at(Builder.before(op)):
        wide = apply_operator("cast", scale, dtype="float32")
        matrix = apply_operator("weight_dequantize", given["weight"], wide, algo=algo, group_size=group_size)
        if offset is not None:
            rows = apply_operator("cast", offset, dtype="float32")
            rows = rows if offset.ndim == 2 else apply_operator("unsqueeze", rows, axis=0)
            each = _size(matrix.shape[0]) // _size(rows.shape[0])
            spread = apply_operator("repeat_interleave", rows, each, axis=0)
            matrix = apply_operator("add", matrix, spread)
        matrix = apply_operator("cast", matrix, dtype=x.dtype)
        made = apply_operator("matmul", x, matrix, location=op.location)
    op.replace_with([made])


def _operands(op: Operation) -> dict[str, Any]:
    return dict(get_operator(op.kind).signature.regroup(op.operands, op.attributes))


def _parts(value: Value, is_plain: Callable[[Value], bool]) -> list[_Part] | None:
    """The parts of a value [b, s, heads, width] by its last axis; None where dataflow does not tell."""
    if not isinstance(value, OpResult) or any(not isinstance(n, int) for n in value.shape[2:]):
        return None
    op = value.op
    if op.name == "prim.concat" and op.attributes["axis"] == 3:
        found = [_parts(x, is_plain) for x in op.operands]
        return None if any(x is None for x in found) else [part for x in found for part in x or ()]
    if op.name == "prim.slice":
        return _slice_parts(value, is_plain)
    if op.name == "prim.broadcast":
        return _shared_part(value)
    return _product_part(value, is_plain) if op.name == "prim.reshape" else None


def _slice_parts(value: OpResult, is_plain: Callable[[Value], bool]) -> list[_Part] | None:
    attributes, source = value.op.attributes, value.op.operand(0)
    start, limit, stride = (attributes[name] for name in ("start", "limit", "stride"))
    if set(stride) != {1} or any(start[:3]) or tuple(limit[:3]) != tuple(source.shape[:3]):
        return None
    kept, at = [], 0
    for part in _parts(source, is_plain) or ():
        low, high = max(start[3], at), min(limit[3], at + part.width)
        if low < high:
            kept.append(replace(part, start=part.start + low - at, width=high - low))
        at += part.width
    return kept or None


def _shared_part(value: OpResult) -> list[_Part] | None:
    """A broadcast of [b, s, r] or [b, s, 1, r] along the heads."""
    axes, source = value.op.attributes["axes"], value.op.operand(0)
    if tuple(axes) not in ((0, 1, 3), (0, 1, 2, 3)) or (source.ndim == 4 and source.shape[2] != 1):
        return None
    whole = source.shape[:2] == value.shape[:2] and source.shape[-1] == value.shape[3]
    return [_Part(source, _size(source.shape[-1]))] if whole else None


def _product_part(value: OpResult, is_plain: Callable[[Value], bool]) -> list[_Part] | None:
    """A product [b, s, heads * made] with its channels told apart by head."""
    product = value.op.operand(0)
    if not isinstance(product, OpResult) or product.op.name != "prim.dot_general" or product.ndim != 3:
        return None
    latent, matrix = product.op.operands
    a: Any = product.op.attributes
    fits = a["lhs_contract"] == (2,) and len(a["rhs_contract"]) == 1 and not (a["lhs_batch"] or a["accumulate"])
    apart = value.shape[:2] == product.shape[:2]
    if not (fits and apart and matrix.ndim == 2 and is_plain(matrix) and isinstance(latent.shape[2], int)):
        return None
    made = _size(value.shape[3])
    return [_Part(latent, made, 0, matrix, a["rhs_contract"] == (1,), made)]


def _channels(value: Value, part: _Part) -> Value:
    """A shared part [t, width] of [t, 1, r] or [t, r]."""
    flat = prim.reshape(value, shape=(value.shape[0], value.shape[-1]))
    return _cut(flat, 1, part.start, part.width)


def _size(dim: Any) -> int:
    return int(dim)


def _cut(value: Value, axis: int, start: int, width: int) -> Value:
    """Some channels along the last axis, ``axis``."""
    if (start, width) == (0, value.shape[axis]):
        return value
    limit = (*value.shape[:axis], start + width)
    return prim.slice(value, start=(*(0,) * axis, start), limit=limit, stride=(1,) * value.ndim)  # type: ignore[no-any-return]

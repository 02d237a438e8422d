"""The paged caches of a program that is being made: states, what writes them, and attention over them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from argosy_infer.caches import CACHE
from argosy_phi_ops import prim
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["Pages", "UpdatedCache", "mask_keys"]

_LARGEST = 127.0
_NEUTRAL = {"sum": 0, "prod": 1, "max": -math.inf, "min": math.inf, "logsumexp": -math.inf}
"""What a running sum or other scan of floats begins with."""


class UpdatedCache(NamedTuple):
    """A cache [blocks, block, heads, width] that holds new tokens, and its scales [blocks, block, heads], if any."""

    cache: Value
    scales: Value | None


class Pages:
    """Makes the caches of ``target``, of blocks of ``block_size`` tokens, for the tokens at ``positions`` [t] of the
    rows ``rows`` [t] of ``block_tables``. ``dtype``: that of caches, where it is not the program's own ("int8": with a
    scale for each token and head)."""

    def __init__(
        self, target: Program, block_size: int, dtype: str | None, positions: Value, rows: Value, block_tables: Value
    ) -> None:
        self.target, self.block_size, self.dtype = target, block_size, dtype
        self.positions, self.rows, self.block_tables = positions, rows, block_tables
        self.updates: list[Value] = []
        self._slots = self._find_slots(positions, rows)

    def write(self, name: str, new: Value, about: dict[str, Any]) -> UpdatedCache:
        """A new cache with ``new`` [t, heads, width] in place."""
        if self.dtype is None:
            return UpdatedCache(self._write(name, new, about), None)
        values, scales = _to_bytes(new)
        return UpdatedCache(
            self._write(name, values, about), self._write(f"{name}.scales", scales, {**about, "scales_of": name})
        )

    def attend(
        self, query: Value, keys: UpdatedCache, values: UpdatedCache, sinks: Value | None, rule: dict[str, Any]
    ) -> Value:
        """The attention [t, heads, v] of ``query`` [t, heads, d] to what is cached."""
        tokens, heads, size = query.shape
        cached = keys.cache.shape[2]
        grouped = (cached, heads // cached)
        others = [] if sinks is None else [prim.reshape(sinks, shape=grouped)]
        others += [x.scales for x in (keys, values) if x.scales is not None]
        mixed = prim.paged_attention(
            prim.reshape(query, shape=(tokens, *grouped, size)), keys.cache, values.cache, self.positions, self.rows,
            self.block_tables, *others, **rule,
        )  # fmt: skip
        return prim.reshape(mixed, shape=(tokens, heads, mixed.shape[3]))  # type: ignore[no-any-return]

    def scan(self, name: str, new: Value, kind: str, starts: Value, layer: int) -> Value:
        """The running ``kind`` of ``new`` [t, ...] along each row, after what is cached for the token before its first
        one (``starts`` [rows + 1]); that of every token is cached, so that a row may go on from any."""
        rows, tokens, rest = self.block_tables.shape[0], new.shape[0], new.shape[1:]
        neutral = prim.constant(_NEUTRAL[kind], new.dtype, (1, *rest))
        state, carried = self.add_carry(name, rest, new.dtype, neutral, starts, layer)
        shape = (rows, tokens, *rest)
        own = prim.eq(
            prim.broadcast(self.rows, shape=shape[:2], axes=(1,)), prim.iota(shape=shape[:2], axis=0, dtype="int64")
        )
        along = prim.select(
            prim.broadcast(own, shape=shape, axes=(0, 1)),
            prim.broadcast(new, shape=shape, axes=tuple(range(1, len(shape)))),
            prim.constant(_NEUTRAL[kind], new.dtype, shape),
        )
        whole = prim.concat(prim.reshape(carried, shape=(rows, 1, *rest)), along, axis=1)
        running = prim.cumulative(whole, axis=1, kind=kind)
        after = prim.add(prim.iota(shape=(tokens,), axis=0, dtype="int64"), prim.constant(1, "int64", (tokens,)))
        places = prim.concat(*(prim.reshape(x, shape=(tokens, 1)) for x in (self.rows, after)), axis=1)
        made: Value = prim.gather(running, places, axes=(0, 1))
        self.keep(state, made)
        return made

    def add_carry(
        self, name: str, shape: tuple[Any, ...], dtype: str, initial: Value, starts: Value, layer: int
    ) -> tuple[Value, Value]:
        """A new cache of what is carried along the text, for `keep`, and what is cached for the token before each row's
        first one, [rows, *shape]: ``initial`` [rows or 1, *shape] where that is the text's own first one."""
        rows = self.block_tables.shape[0]
        begins = prim.slice(starts, start=(0,), limit=(rows,), stride=(1,))
        firsts = prim.gather(self.positions, prim.reshape(begins, shape=(rows, 1)), axes=(0,))
        before = prim.maximum(prim.sub(firsts, prim.constant(1, "int64", (rows,))), prim.constant(0, "int64", (rows,)))
        slots = self._find_slots(before, prim.iota(shape=(rows,), axis=0, dtype="int64"))
        state = self._add_state(name, shape, dtype, {"kind": "recurrent", "layer": layer, "window": 0})
        if initial.shape[0] == 1:
            one = prim.reshape(initial, shape=shape)
            initial = prim.broadcast(one, shape=(rows, *shape), axes=tuple(range(1, 1 + len(shape))))
        is_first = prim.broadcast(prim.eq(firsts, prim.constant(0, "int64", (rows,))), shape=(rows, *shape), axes=(0,))
        return state, prim.select(is_first, initial, prim.gather(state, slots, axes=(0, 1)))

    def keep(self, state: Value, new: Value) -> Value:
        """The cache with ``new`` [t, ...] in the tokens' places."""
        updated: Value = prim.scatter(state, self._slots, new, axes=(0, 1), kind="set")
        self.updates.append(updated)
        return updated

    def _write(self, name: str, new: Value, about: dict[str, Any]) -> Value:
        return self.keep(self._add_state(name, new.shape[1:], new.dtype, about), new)

    def _add_state(self, name: str, shape: tuple[Any, ...], dtype: str, about: dict[str, Any]) -> Value:
        type = TensorType((SymExpr.symbol("kv_blocks"), self.block_size, *shape), dtype)
        return self.target.add_state(name, type, {"role": CACHE, **about}).argument

    def _find_slots(self, positions: Value, rows: Value) -> Value:
        """Block and place in it of each position of a row [t, 2]."""
        tokens = positions.shape[0]
        size = prim.constant(self.block_size, "int64", (tokens,))
        columns = [prim.reshape(x, shape=(tokens, 1)) for x in (rows, prim.floor_div(positions, size))]
        block = prim.gather(self.block_tables, prim.concat(*columns, axis=1), axes=(0, 1))
        inside = prim.floor_mod(positions, size)
        columns = [prim.reshape(x, shape=(tokens, 1)) for x in (block, inside)]
        return prim.concat(*columns, axis=1)  # type: ignore[no-any-return]


def mask_keys(query: Value, key: Value, mask: Value, scale: float) -> tuple[Value, Value]:
    """Queries and keys [t, heads, d + 1] whose last channel adds a ``mask`` of keys (t elements; boolean, or added) to
    their scores, so that it is cached with them."""
    tokens = key.shape[0]
    added = prim.reshape(mask, shape=(tokens,))
    least = prim.constant(-6e4 if key.dtype == "float16" else -1e30, key.dtype, (tokens,))
    if added.dtype == "bool":
        added = prim.select(added, prim.constant(0, key.dtype, (tokens,)), least)
    else:  # minus infinity where all keys are hidden has no softmax
        added = prim.maximum(added if added.dtype == key.dtype else prim.cast(added, dtype=key.dtype), least)
    added = prim.div(added, scale)
    one = prim.constant(1, query.dtype, (*query.shape[:2], 1))
    return prim.concat(query, one, axis=2), prim.concat(
        key, prim.broadcast(added, shape=(*key.shape[:2], 1), axes=(0,)), axis=2
    )


def _to_bytes(new: Value) -> tuple[Value, Value]:
    """``new`` [t, heads, width] as int8, and float32 scales [t, heads]: the largest magnitude of a head is 127."""
    wide, outer = prim.cast(new, dtype="float32"), (0, 1)
    scales = prim.div(prim.reduce_max(prim.abs(wide), axes=(2,)), _LARGEST)
    divisor = prim.select(prim.eq(scales, 0.0), prim.constant(1.0, "float32", scales.shape), scales)
    whole = prim.round(prim.div(wide, prim.broadcast(divisor, shape=new.shape, axes=outer)))
    return prim.cast(whole, dtype="int8"), scales

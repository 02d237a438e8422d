"""Random words as a pure function of (seed, draw, index): Philox4x32-10 (Salmon et al., SC 2011)."""

from __future__ import annotations

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I32, I64, Value, constant, lanes_of, vector

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_ROUNDS = 10


def random_word(b: Instructions, index: Value, seed: Value, draw: Value) -> Value:
    """Word ``index`` (i64, scalar or vector) of a draw: lane ``index % 4`` of block ``index // 4``.

    ``seed`` and ``draw`` are scalars.
    """
    lanes = lanes_of(index.type)
    type = vector(I64, lanes)
    block = b.binary("lshr", index, 2)
    # Words are kept in the low halves of 64-bit lanes, where products of two need no unpacking.
    words = [b.binary("and", block, _WORD), b.binary("lshr", block, 32)]
    words += [b.splat(x, lanes) for x in (b.binary("and", draw, _WORD), b.binary("lshr", draw, 32))]
    keys = [b.binary("and", seed, _WORD), b.binary("lshr", seed, 32)]
    for _ in range(_ROUNDS):
        words = _emit_philox_round(b, words, [b.splat(k, lanes) for k in keys])
        keys = [b.binary("and", b.binary("add", k, w), _WORD) for k, w in zip(keys, _WEYL, strict=True)]
    lane = b.binary("and", index, 3)
    result = words[3]
    for k in (2, 1, 0):
        result = b.select(b.icmp("eq", lane, constant(type, k)), words[k], result)
    return b.convert("trunc", result, I32)


def _emit_philox_round(b: Instructions, c: list[Value], keys: list[Value]) -> list[Value]:
    p0, p1 = b.binary("mul", c[0], _MULTIPLIERS[0]), b.binary("mul", c[2], _MULTIPLIERS[1])
    return [
        b.binary("xor", b.binary("xor", b.binary("lshr", p1, 32), c[1]), keys[0]),
        b.binary("and", p1, _WORD),
        b.binary("xor", b.binary("xor", b.binary("lshr", p0, 32), c[3]), keys[1]),
        b.binary("and", p0, _WORD),
    ]

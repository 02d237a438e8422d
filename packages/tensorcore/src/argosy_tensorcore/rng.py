"""Counter-based random numbers: pure functions of (seed, counter, element index), so that eager, compiled,
sharded and replayed programs draw the same ones.

The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.erfinv import erfinv_inside
from argosy_tensorcore.storage import Array, StridedArray

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_ROUNDS = 10
_CHUNK = 4096  # blocks whose working set stays in the innermost caches
_MOST_WORDS = 1 << 20  # that are drawn at once where a part of an array is
_FEW = 4  # blocks that plain integers do faster than arrays


def philox_block(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """One block of Philox4x32-10: four 32-bit counter words and two key words in, four random words out."""
    c0, c1, c2, c3 = counter
    for k0, k1 in _round_keys(*key):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _WORD, (p0 >> 32) ^ c3 ^ k1, p0 & _WORD
    return c0, c1, c2, c3


def philox_bits(seed: int, counter: int, shape: int | Sequence[int], index0: int = 0) -> Array:
    """Random uint32 words of draw (seed, counter), in row-major order, beginning with element index0 of the
    draw.

    Element i is lane ``i % 4`` of block ``b = i // 4``: key (seed low, seed high), counter words (b low, b
    high, counter low, counter high). seed and counter are taken modulo 2**64.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = prod(shape)
    if index0 < 0 or count < 0:
        raise ValueError(f"philox_bits: shape {list(shape)} and index0 {index0} must not be negative")
    first, last = index0 // 4, -(-(index0 + count) // 4)
    words = np.empty((last - first, 4), np.uint32)
    key, high = _halves(seed), _halves(counter)
    if last - first <= _FEW:
        for row, block in enumerate(range(first, last)):
            words[row] = philox_block((*_halves(block), *high), key)
    else:
        _fill(words, first, high, list(_round_keys(*key)))
    skip = index0 - 4 * first
    return words.reshape(-1)[skip : skip + count].reshape(shape)


def philox_part_bits(
    seed: int, counter: int, start: Sequence[int], shape: Sequence[int], whole: Sequence[int]
) -> Array:
    """The words of draw (seed, counter) of an array of shape ``whole`` that lie in its block of ``shape`` from
    ``start`` on, uint32 of ``shape``; at most those of a row of ``whole``, or a million, are drawn besides.
    """
    strides = [prod(whole[i + 1 :]) for i in range(len(whole))]
    made = np.empty(tuple(shape), np.uint32)
    rows = max(1, _MOST_WORDS // strides[0]) if strides else 1
    for at in range(0, shape[0] if shape else 1, rows):
        block = made[at : at + rows] if shape else made
        if not block.size:
            break
        first = sum(s * step for s, step in zip(start, strides, strict=True)) + at * (strides[0] if strides else 0)
        reach = sum((n - 1) * step for n, step in zip(block.shape, strides, strict=True))
        words = philox_bits(seed, counter, (reach + 1,), first)
        steps = tuple(step * words.itemsize for step in strides)
        block[...] = np.lib.stride_tricks.as_strided(words, block.shape, steps, writeable=False)
    return made


def _halves(x: int) -> tuple[int, int]:
    return x & _WORD, (x >> 32) & _WORD


def _round_keys(k0: int, k1: int) -> Iterator[tuple[int, int]]:
    for _ in range(_ROUNDS):
        yield k0, k1
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD


def _fill(words: Array, first: int, high: tuple[int, int], keys: list[tuple[int, int]]) -> None:
    """Blocks first, first + 1, ... into the rows of words, a cache-sized chunk at a time."""
    buffers = np.empty((6, min(_CHUNK, len(words))), np.uint64)
    round_keys = [(np.uint64(k0), np.uint64(k1)) for k0, k1 in keys]
    for start in range(0, len(words), _CHUNK):
        rows = words[start : start + _CHUNK]
        c0, c1, c2, c3, p0, p1 = buffers[:, : len(rows)]
        index = np.arange(len(rows), dtype=np.uint64) + np.uint64(first + start)
        np.bitwise_and(index, _MASK, out=c0)
        np.right_shift(index, _HALF, out=c1)
        c2[:], c3[:] = high
        _rounds(c0, c1, c2, c3, p0, p1, round_keys)
        for lane, c in enumerate((c0, c1, c2, c3)):
            rows[:, lane] = c


_HALF, _MASK = np.uint64(32), np.uint64(_WORD)
_M0, _M1 = np.uint64(_MULTIPLIERS[0]), np.uint64(_MULTIPLIERS[1])


def _rounds(c0: Array, c1: Array, c2: Array, c3: Array, p0: Array, p1: Array, keys: list[tuple[Any, Any]]) -> None:
    """The ten rounds in place on 32-bit words held in uint64 arrays; p0 and p1 take the products."""
    for k0, k1 in keys:
        np.multiply(c0, _M0, out=p0)
        np.multiply(c2, _M1, out=p1)
        np.right_shift(p1, _HALF, out=c0)
        np.bitwise_xor(c0, c1, out=c0)
        np.bitwise_xor(c0, k0, out=c0)
        np.bitwise_and(p1, _MASK, out=c1)
        np.right_shift(p0, _HALF, out=c2)
        np.bitwise_xor(c2, c3, out=c2)
        np.bitwise_xor(c2, k1, out=c2)
        np.bitwise_and(p0, _MASK, out=c3)


# ---- from bits to numbers


def uniform_from_bits(bits: Array, dtype: object = "float32") -> Array:
    """Uniform numbers in [0, 1): the leading bits of each word as a fraction, exactly.

    float32 takes 24 bits (``(word >> 8) * 2**-24``), float16 11, bfloat16 8; float64 takes 53 from pairs of
    words along a last axis of size 2: ``((w0 >> 5) * 2**26 + (w1 >> 6)) * 2**-53``.
    """
    name = _check_float_dtype(dtype)
    if name == "float64":
        high, low = _pairs(bits, "uniform_from_bits")
        return ((high >> 5) * 67108864.0 + (low >> 6)) * 2.0**-53
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}[name]
    fraction = (bits >> np.uint32(32 - digits)).astype(np.float32) * np.float32(2.0**-digits)
    return fraction.astype(as_dtype(name).numpy, copy=False)


def normal_from_bits(bits: Array, dtype: object = "float32") -> Array:
    """Standard normal numbers: sqrt(2) * erfinv(x) of uniform x in the open interval (-1, 1).

    float32 takes the leading 23 bits k of each word: ``x = (2 * k + 1 - 2**23) * 2**-23``, exactly. float64
    takes 52 bits of pairs of words along a last axis of size 2: ``k = (w0 >> 6) * 2**26 + (w1 >> 6)``, ``x =
    (2 * k + 1 - 2**52) * 2**-52``. float16 and bfloat16 are rounded from float32.
    """
    name = _check_float_dtype(dtype)
    if name == "float64":
        high, low = _pairs(bits, "normal_from_bits")
        k = (high >> 6).astype(np.int64) << 26 | (low >> 6)
        doubled: Array = np.sqrt(2.0) * erfinv_inside((2 * k + (1 - (1 << 52))) * 2.0**-52)
        return doubled
    k = (bits >> np.uint32(9)).astype(np.int32)
    x = (2 * k + np.int32(1 - (1 << 23))).astype(np.float32) * np.float32(2.0**-23)
    return (np.float32(np.sqrt(2.0)) * erfinv_inside(x)).astype(as_dtype(name).numpy, copy=False)


def _check_float_dtype(dtype: object) -> str:
    name = as_dtype(dtype).name
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"random numbers are made as float16, bfloat16, float32 or float64, not {name}")
    return name


def _pairs(bits: Array, function: str) -> tuple[Array, Array]:
    if bits.ndim == 0 or bits.shape[-1] != 2:
        raise ValueError(
            f"{function} for float64 needs pairs of words along a last axis of size 2, not {list(bits.shape)}"
        )
    return bits[..., 0], bits[..., 1]


def _word(seed: int) -> int:
    """A seed as 64 bits."""
    try:
        return index(seed) & 0xFFFFFFFFFFFFFFFF
    except TypeError:
        raise TypeError(f"argument 'seed' must be an integer, got {seed!r:.80} ({type(seed).__name__})") from None


class Generator:
    """A source of draws: a seed and the number of draws so far, held in one uint64[2] tensor that programs
    can update.

    state: that tensor; seed, offset: its two words as integers.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int = 0) -> None:
        self._state: Tensor | Array = np.array([_word(seed), 0], np.uint64)

    @property
    def state(self) -> Tensor:
        """The live state, uint64[2] = (seed, offset); writing to it moves the generator."""
        if isinstance(self._state, np.ndarray):
            from argosy_tensorcore.tensor import Tensor

            self._state = Tensor._wrap(StridedArray.from_array(self._state))
            self._state.persistable = True
        return self._state

    @property
    def array(self) -> Array | None:
        """The state while nobody has asked for its tensor: whoever writes to it makes draws. None afterwards."""
        return self._state if isinstance(self._state, np.ndarray) else None

    def _words(self) -> Array:
        return self._state if isinstance(self._state, np.ndarray) else self._state.payload.array()

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return int(self._words()[0])

    @property
    def offset(self) -> int:
        """How many draws were made: the counter of the next one."""
        return int(self._words()[1])

    def initial_seed(self) -> int:
        """The seed, under Paddle's name."""
        return self.seed

    def manual_seed(self, seed: int) -> Generator:
        """Start over with another seed; returns the generator."""
        self._set(_word(seed), 0)
        return self

    def draw(self) -> tuple[int, int]:
        """The (seed, counter) of a fresh draw, for ``philox_bits``."""
        seed, counter = self._words().tolist()
        self._set(seed, counter + 1)
        return seed, counter

    def advance(self, draws: int) -> None:
        """Count draws that were made elsewhere, by a compiled program say."""
        seed, counter = self._words().tolist()
        self._set(seed, counter + draws)

    def get_state(self) -> Tensor:
        """A copy of the state."""
        from argosy_tensorcore.tensor import Tensor

        return Tensor(self._words())

    def set_state(self, state: Tensor) -> None:
        """Go to a state that ``get_state`` gave. Raises ValueError for other tensors."""
        words = np.asarray(state)
        if words.dtype != np.uint64 or words.shape != (2,):
            raise ValueError(
                f"a generator's state is uint64 of shape [2], not {words.dtype} of shape {list(words.shape)}"
            )
        self._set(*words.tolist())

    def _set(self, seed: int, offset: int) -> None:
        self._words()[:] = seed, offset & 0xFFFFFFFFFFFFFFFF
        if not isinstance(self._state, np.ndarray):
            self._state.payload.bump_version()

    def __repr__(self) -> str:
        return f"Generator(seed={self.seed}, offset={self.offset})"

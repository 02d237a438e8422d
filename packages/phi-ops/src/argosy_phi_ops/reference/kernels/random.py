"""Random bits: a pure function of (seed, counter, element index)."""

from collections.abc import Sequence
from math import prod

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel
from argosy_tensorcore.rng import philox_bits


@kernel("rng_bits")
def rng_bits(
    state: Array, *, counter: int, shape: Sequence[int], start: Sequence[int] = (), whole: Sequence[int] = ()
) -> Array:
    """uint32 bits of draw number `state[1] + counter` of seed `state[0]` (Philox4x32-10); with `whole` the block of
    that draw at `start`.
    """
    seed, offset = (int(word) for word in state)
    draw = (offset + counter) % 2**64
    if not whole or 0 in shape:
        return np.asarray(philox_bits(seed, draw, tuple(shape)), np.uint32).reshape(shape)
    return _block(seed, draw, tuple(shape), start, tuple(whole))


def _block(seed: int, draw: int, shape: tuple[int, ...], start: Sequence[int], whole: tuple[int, ...]) -> Array:
    """The words between the first and the last of the block are drawn; the block is picked out of them."""
    strides = [prod(whole[i + 1 :]) for i in range(len(whole))]
    first = sum(s * step for s, step in zip(start, strides, strict=True))
    reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    words = np.asarray(philox_bits(seed, draw, (reach + 1,), first), np.uint32)
    steps = tuple(step * words.itemsize for step in strides)
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=False).copy()

"""Random bits: a pure function of (seed, counter, element index)."""

from collections.abc import Sequence

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel
from argosy_tensorcore.rng import philox_bits, philox_part_bits


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
    return philox_part_bits(seed, draw, start, tuple(shape), tuple(whole))

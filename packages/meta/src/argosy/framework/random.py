"""The seed and state of the random generator of this rank.

Draws are a pure function of (seed, counter, index); the state is the pair (seed, counter) in one uint64 tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.argument_checks import validate_call
from argosy_phi_ops.context import context
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.tensor import Tensor

__all__ = ["get_rng_state", "initial_seed", "seed", "set_rng_state"]


def seed(seed: int) -> Generator:
    """Restart the random generator from ``seed`` (0 <= seed < 2**64). Returns the generator."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed() takes an integer from 0 to 2**64 - 1, not {seed!r}")
    generator = context().generator
    generator.manual_seed(seed)
    return generator


def initial_seed() -> int:
    """The seed that the generator was last started from."""
    return int(context().generator.get_state()[0])


def get_rng_state(device: object = None) -> list[Tensor]:
    """The state of the generator, in a list of one uint64 tensor [seed, counter]: a copy."""
    return [context().generator.get_state()]


@validate_call
def set_rng_state(state_list: Sequence[Tensor], device: object = None) -> None:
    """Put back what :func:`get_rng_state` gave. Raises ValueError for anything else."""
    if len(state_list) != 1 or list(state_list[0].shape) != [2]:
        raise ValueError("set_rng_state() takes a list of one uint64 tensor of shape [2], as get_rng_state() gives it")
    context().generator.set_state(state_list[0])

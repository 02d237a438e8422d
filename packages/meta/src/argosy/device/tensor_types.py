"""Tensors made by the name of their dtype, ``FloatTensor(2, 3)``; and the random generator, asked for as a device's."""

from __future__ import annotations

from argosy.framework.random import seed as _seed
from argosy.framework.typed_creation import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "get_rng_state", "manual_seed", "set_rng_state",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Restart the random generator from ``seed``. Raises ValueError for one outside 0 to 2**64 - 1."""
    _seed(int(seed))


def get_rng_state(device: object = None) -> Tensor:
    """The state of the generator, one uint64 tensor [seed, counter]: a copy."""
    state: Tensor = context().generator.get_state()
    return state


def set_rng_state(new_state: Tensor, device: object = None) -> None:
    """Put back what :func:`get_rng_state` gave. Raises ValueError for anything else."""
    if not isinstance(new_state, Tensor) or list(new_state.shape) != [2]:
        raise ValueError(
            "device.set_rng_state() takes a uint64 tensor of shape [2], as device.get_rng_state() gives it"
        )
    context().generator.set_state(new_state)

"""How much memory a step takes on this rank at most, by what it is for."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["PeakBytes", "bytes_on_rank", "local_bytes", "state_bytes"]


class PeakBytes(NamedTuple):
    """Bytes of this rank's parts of ``parameters`` (and buffers), of ``gradients`` that outlive a pass and of optimizer
    ``states``, which are there throughout; of other ``values``, inputs and a program's intermediate ones among them,
    the most that are there together."""

    parameters: int
    gradients: int
    states: int
    values: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


def local_bytes(tensors: Iterable[Tensor]) -> int:
    """The bytes that this rank has of tensors, each counted once."""
    payloads: dict[int, Any] = {id(x): x.payload for x in tensors}
    held = [p.local if type(p) is ShardedArray else p for p in payloads.values()]
    return sum(p.size * p.dtype.itemsize for p in held)


def bytes_on_rank(tensor: Tensor, rank: int) -> int:
    """The bytes that a rank has of a tensor: of a distributed one its part, of others the whole."""
    payload: Any = tensor.payload
    if type(payload) is not ShardedArray:
        return int(payload.size * payload.dtype.itemsize)
    if not payload.mesh.contains(rank):
        return 0
    return prod(payload.layout.local_slice(payload.shape, rank).shape) * int(payload.dtype.itemsize)


def state_bytes(optimizer: Optimizer | None) -> int:
    """The bytes that this rank has of an optimizer's states: nothing before they are made, by the first step."""
    if optimizer is None:
        return 0
    made = [x for kind in optimizer._accumulators.values() for x in kind.values()]
    return local_bytes([*made, *optimizer._master_weights.values()])

"""Gradients added up over the microbatches of a step, each rank its part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.distributed.group import Group
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_autoparallel.placement import Partial, Placement
from argosy_autoparallel.tensor_layout import Layout
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Gradients"]

_BUCKET = 25 << 20


class Gradients:
    """The sum of each tensor's gradient on this rank; of a tensor that stages share, a term of a sum over these."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Tensor, tuple[Placement, ...]]] = {}
        self._sums: dict[int, StridedArray] = {}
        self._given: dict[int, Tensor] = {}

    def placements(self, tensor: Tensor) -> tuple[Placement, ...]:
        """How the terms of a tensor's gradient lie on the mesh of a stage; nothing while that is not known."""
        found = self._tensors.get(id(tensor))
        return () if found is None else found[1]

    def add(self, tensor: Tensor, placements: Sequence[Placement]) -> None:
        """Take in a tensor whose gradient is asked for."""
        self._tensors.setdefault(id(tensor), (tensor, tuple(placements)))

    def sum(self, tensor: Tensor, shape: Sequence[int]) -> StridedArray:
        """This rank's sum of a tensor's gradient, a part of ``shape``; zero at first."""
        key = id(tensor)
        if key not in self._sums:
            self._sums[key] = StridedArray(np.zeros(tuple(shape), tensor.payload.dtype.numpy))
        return self._sums[key]

    def begin(self) -> None:
        """Take the gradients back, which passes do not see, and begin anew where somebody has cleared them."""
        if any(tensor._grad is not self._given.get(key) for key, (tensor, _) in self._tensors.items()):
            self.clear()
        for tensor, _ in self._tensors.values():
            tensor._grad = None

    def average(self, groups: Sequence[Group]) -> None:
        """Replace the sums by their means over ranks that have the same ones."""
        for group in groups:
            sums = list(self._sums.values())
            means = all_reduce_buckets([each.ndarray for each in sums], group.communicator, "avg", _BUCKET)
            for each, mean in zip(sums, means, strict=True):
                each.ndarray[...] = mean
                each.bump_version()

    def hand_out(self) -> None:
        """Give each tensor its gradient, as a backward pass of one process would."""
        for key, (tensor, placements) in self._tensors.items():
            if key not in self._given:
                self._given[key] = self._gradient(tensor, placements)
            tensor._grad = self._given[key]

    def clear(self) -> None:
        """Take the gradients back, and begin anew."""
        for tensor, _ in self._tensors.values():
            tensor._grad = None
        for each in self._sums.values():
            each.ndarray[...] = 0
            each.bump_version()

    def _gradient(self, tensor: Tensor, placements: Sequence[Placement]) -> Tensor:
        payload = tensor.payload
        shared = payload.mesh.ndim - len(placements)
        layout = Layout(payload.mesh, [*[Partial()] * shared, *placements])
        if not payload.is_held:
            local = StridedArray(np.zeros(0, np.bool_))
        else:
            local = self.sum(tensor, payload.local.shape)
        return Tensor._wrap(ShardedArray(local, payload.shape, payload.dtype, layout))

"""Gradients added up over the microbatches of a step, each rank its part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.distributed.group import Group
from argosy.distributed.parameter_owners import ParameterOwners
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_autoparallel.placement import Partial, Placement
from argosy_autoparallel.tensor_layout import Layout
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Gradients"]

_BUCKET = 25 << 20


class Gradients:
    """The sum of each tensor's gradient on this rank; of a tensor that stages share, a term of a sum over these. Over
    the members of ``shards`` each tensor has an owner, which alone is given its gradient."""

    def __init__(self, shards: Group | None = None) -> None:
        self.owners = None if shards is None else ParameterOwners([], shards)
        if self.owners is not None:
            self.owners.publish_later()  # where the step is the caller's
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
        if any(tensor._grad is not given for tensor, given in self._owned()):
            self.clear()
        for tensor, _ in self._tensors.values():
            tensor._grad = None
        if self.owners is not None:  # of a mean the others have nothing
            for each in self._sums.values():
                each.ndarray[...] *= self.owners.group.nranks
                each.bump_version()

    def average(self, groups: Sequence[Group]) -> None:
        """Replace the sums by their means over ranks that have the same ones."""
        sums = list(self._sums.values())
        for group in groups:
            means = all_reduce_buckets([each.ndarray for each in sums], group.communicator, "avg", _BUCKET)
            for each, mean in zip(sums, means, strict=True):
                each.ndarray[...] = mean
                each.bump_version()
        if self.owners is not None:
            self.owners.add([tensor for tensor, _ in self._tensors.values()])
            held = [self._tensors[key][0] for key in self._sums]
            for each, own in zip(sums, self.owners.means(held, [Tensor._wrap(x) for x in sums]), strict=True):
                each.ndarray[...] = 0 if own is None else own.numpy()
                each.bump_version()

    def hand_out(self) -> None:
        """Give each tensor its gradient, as a backward pass of one process would."""
        for key, (tensor, placements) in self._tensors.items():
            if key not in self._given and (self.owners is None or self.owners.is_own(tensor)):
                self._given[key] = self._gradient(tensor, placements)
        for tensor, given in self._owned():
            tensor._grad = given

    def publish(self) -> None:
        """Give every rank the parameters that their owners have updated."""
        if self.owners is not None:
            self.owners.publish([self._tensors[key][0] for key in self._sums])

    def clear(self) -> None:
        """Take the gradients back, and begin anew."""
        for tensor, _ in self._tensors.values():
            tensor._grad = None
        for each in self._sums.values():
            each.ndarray[...] = 0
            each.bump_version()

    def _owned(self) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors that this rank is to give gradients, and what they were given last."""
        is_own = (lambda tensor: True) if self.owners is None else self.owners.is_own
        return [(tensor, self._given.get(key)) for key, (tensor, _) in self._tensors.items() if is_own(tensor)]

    def _gradient(self, tensor: Tensor, placements: Sequence[Placement]) -> Tensor:
        payload = tensor.payload
        shared = payload.mesh.ndim - len(placements)
        layout = Layout(payload.mesh, [*[Partial()] * shared, *placements])
        if not payload.is_held:
            local = StridedArray(np.zeros(0, np.bool_))
        else:
            local = self.sum(tensor, payload.local.shape)
        return Tensor._wrap(ShardedArray(local, payload.shape, payload.dtype, layout))

"""Gradients added up over the microbatches of a step, each rank its part."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from argosy.distributed.collective import all_reduce
from argosy.distributed.group import Group
from argosy.distributed.parameter_owners import ParameterOwners
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.sharded_optimizer import ShardingStage2
from argosy.distributed.wrapped_layer import ExpertRanks, is_expert
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_autoparallel.placement import Partial, Placement
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.context import context
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Gradients"]

_BUCKET = 25 << 20


class Gradients:
    """The sum of each tensor's gradient on this rank; of a tensor that stages share, a term of a sum over these. Over
    the members of ``shards`` each tensor has an owner, which alone is given its gradient; those of experts are a rank's
    own, where they are spread over ``experts``. ``sharding`` says how they are split where that is ZeRO 2 or 3."""

    def __init__(
        self, shards: Group | None = None, experts: ExpertRanks | None = None, sharding: ShardingStage2 | None = None
    ) -> None:
        self._experts, self._sharding = experts, sharding
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

    def parts(self, tensor: Tensor, dims: int) -> tuple[Placement, ...]:
        """How sums of a tensor's gradient are split over the last ``dims`` dimensions of its mesh as they are made;
        nothing where they are not."""
        if self._sharding is None or type(tensor.payload) is not ShardedArray:
            return ()
        return tuple(self._sharding.split(tensor)[-dims:])

    def add(self, tensor: Tensor, placements: Sequence[Placement]) -> None:
        """Take in a tensor whose gradient is asked for."""
        self._tensors.setdefault(id(tensor), (tensor, tuple(placements)))

    def sum(self, tensor: Tensor, shape: Sequence[int], dtype: str | None = None) -> StridedArray:
        """This rank's sum of a tensor's gradient, a part of ``shape``, by default of the tensor's dtype; zero at
        first."""
        key = id(tensor)
        if key not in self._sums:
            zeros = np.zeros(tuple(shape), (tensor.payload.dtype if dtype is None else as_dtype(dtype)).numpy)
            self._sums[key] = StridedArray.from_array(zeros, tensor.payload.device)
        return self._sums[key]

    def bytes_on_rank(self, rank: int) -> int:
        """The bytes of a rank's sums."""
        return sum(self._part_size(t, places, rank) * t.dtype.itemsize for t, places in self._tensors.values())

    def _part_size(self, tensor: Tensor, placements: Sequence[Placement], rank: int) -> int:
        payload = tensor.payload
        if type(payload) is not ShardedArray:
            return int(tensor.size)
        if not payload.mesh.contains(rank):
            return 0
        return prod(self._layout(tensor, placements).local_slice(payload.shape, rank).shape)

    def begin(self) -> None:
        """Take the gradients back, which passes do not see, and begin anew where somebody has cleared them."""
        if any(tensor._grad is not given for tensor, given in self._own_tensors()):
            self.clear()
        for tensor, _ in self._tensors.values():
            tensor._grad = None
        for key, each in self._sums.items():
            tensor = self._tensors[key][0]
            if self._is_own_expert(tensor):
                _scale(each, self._experts.divisor(tensor))  # type: ignore[union-attr]
            elif self.owners is not None:  # of a mean the others have nothing
                _scale(each, self.owners.group.nranks)

    def average(self, groups: Sequence[Group]) -> None:
        """Replace the sums by their means over ranks that have the same ones."""
        own = [key for key in self._sums if self._is_own_expert(self._tensors[key][0])]
        keys = [key for key in self._sums if key not in own]
        sums = [self._sums[key] for key in keys]
        for group in groups:
            _average(sums, group)
        if self.owners is not None:
            self.owners.add([tensor for tensor, _ in self._tensors.values() if not self._is_own_expert(tensor)])
            held = [self._tensors[key][0] for key in keys]
            for each, mean in zip(sums, self.owners.means(held, [Tensor._wrap(x) for x in sums]), strict=True):
                each.fill_from(0 if mean is None else mean.numpy())
                each.bump_version()
        if self._experts is not None:
            _average([self._sums[key] for key in own], self._experts.alike)
            for key in own:
                _scale(self._sums[key], 1 / self._experts.divisor(self._tensors[key][0]))

    def hand_out(self) -> None:
        """Give each tensor its gradient, as a backward pass of one process would."""
        for key, (tensor, placements) in self._tensors.items():
            if key not in self._given and self._is_given(tensor):
                self._given[key] = self._gradient(tensor, placements)
        for tensor, given in self._own_tensors():
            tensor._grad = given

    def publish(self) -> None:
        """Give every rank the parameters that their owners have updated."""
        if self.owners is not None:
            held = [self._tensors[key][0] for key in self._sums]
            self.owners.publish([tensor for tensor in held if not self._is_own_expert(tensor)])

    def clear(self) -> None:
        """Take the gradients back, and begin anew."""
        for tensor, _ in self._tensors.values():
            tensor._grad = None
        for each in self._sums.values():
            each.fill_from(0)
            each.bump_version()

    def _own_tensors(self) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors that this rank is to give gradients, and what they were given last."""
        return [(tensor, self._given.get(key)) for key, (tensor, _) in self._tensors.items() if self._is_given(tensor)]

    def _is_own_expert(self, tensor: Tensor) -> bool:
        return self._experts is not None and is_expert(tensor)

    def _is_given(self, tensor: Tensor) -> bool:
        return self.owners is None or self._is_own_expert(tensor) or self.owners.is_own(tensor)

    def _gradient(self, tensor: Tensor, placements: Sequence[Placement]) -> Tensor:
        payload, layout = tensor.payload, self._layout(tensor, placements)
        if not payload.is_held:
            local = StridedArray.from_array(np.zeros(0, np.bool_), payload.local.device)
        else:
            local = self.sum(tensor, layout.local_slice(payload.shape, context().rank).shape)
        dtype = local.dtype if payload.is_held else payload.dtype
        return Tensor._wrap(ShardedArray(local, payload.shape, dtype, layout))

    @staticmethod
    def _layout(tensor: Tensor, placements: Sequence[Placement]) -> Layout:
        """How the terms lie on the mesh of all stages that have the tensor."""
        mesh = tensor.payload.mesh
        return Layout(mesh, [*[Partial()] * (mesh.ndim - len(placements)), *placements])


def _average(sums: Sequence[StridedArray], group: Group) -> None:
    """Replace sums by their means: those on the host travel in buckets, those of devices one by one."""
    held = [each for each in sums if each.array_type.device is None]
    means = all_reduce_buckets([each.ndarray for each in held], group.communicator, "avg", _BUCKET)
    for each, mean in zip(held, means, strict=True):
        each.ndarray[...] = mean
        each.bump_version()
    for each in sums:
        if each.array_type.device is not None:
            all_reduce(Tensor._wrap(each), ReduceOp.AVG, group)


def _scale(each: StridedArray, factor: float) -> None:
    each.fill_from(each.to_host() * factor)
    each.bump_version()

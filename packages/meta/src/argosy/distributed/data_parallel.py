"""``DataParallel``: a copy of a layer on every rank, each with data of its own; gradients are averaged in backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref
from zlib import crc32

import numpy as np

from argosy.distributed.buffers import read_values
from argosy.distributed.call_checks import agree
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import all_reduce
from argosy.distributed.group import Group, world_group
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.wrapped_layer import WrappedLayer, equalize, is_expert
from argosy.nn.layer import Layer
from argosy_autograd.hooks import JointHook
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.dist_tensor import is_dist
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["DataParallel"]


class _AverageHook(JointHook):
    """Makes the gradients of a backward pass their means, and with them what was added up within ``no_sync()``."""

    def __init__(self, owner: DataParallel) -> None:
        self._owner = ref(owner)
        self._numbers = {id(x): number for number, x in enumerate(owner._layers.parameters())}

    def __call__(self, leaves: Sequence[Any], gradients: Sequence[Any]) -> Sequence[Any]:
        owner = self._owner()
        if owner is None:
            return gradients
        numbers = [self._numbers[id(x)] for x in leaves]
        order = sorted(range(len(numbers)), key=numbers.__getitem__)  # whatever the order of the backward pass
        if is_capturing():
            if not owner._averaging or owner._behind:
                raise NotImplementedError("DataParallel.no_sync() with a captured step is not implemented")
            return self._average_tensors(owner, order, gradients)
        if not owner._averaging:
            owner._behind.update(numbers)
            return gradients
        chosen = sorted(numbers)
        agree(
            owner._group.communicator, "DataParallel", gradients=f"{len(chosen)} of {len(self._numbers)}",
            of=crc32(str(chosen).encode()),
        )  # fmt: skip
        if any(accelerator_of(g) is not None for g in gradients):
            return self._average_on_devices(owner, numbers, order, leaves, gradients)
        behind = {i: read_values(leaves[i].grad, "DataParallel") for i, n in enumerate(numbers) if n in owner._behind}
        sums = [read_values(g, "DataParallel") for g in gradients]
        for i, before in behind.items():
            sums[i] = sums[i] + before
        communicator, limit = owner._group.communicator, owner._buffer_bytes
        given = [sums[i].astype(np.float16) if owner._travels_narrow(sums[i].dtype) else sums[i] for i in order]
        made = all_reduce_buckets(given, communicator, "avg", limit)
        means = {i: mean.astype(sums[i].dtype, copy=False) for i, mean in zip(order, made, strict=True)}
        owner._behind.difference_update(numbers)
        whole = [means[i] - behind[i] if i in behind else means[i] for i in range(len(numbers))]
        return [Tensor._wrap(StridedArray(np.asarray(array))) for array in whole]

    def _average_on_devices(
        self, owner: DataParallel, numbers: Sequence[int], order: Sequence[int], leaves: Sequence[Any],
        gradients: Sequence[Any],
    ) -> Sequence[Any]:  # fmt: skip
        """Where the gradients are: the communicator gets buffers of their device where it takes them."""
        behind = {i: leaves[i].grad.detach() for i, n in enumerate(numbers) if n in owner._behind}
        sums = [g.detach() + behind[i] if i in behind else g for i, g in enumerate(gradients)]
        means = self._average_tensors(owner, order, sums)
        owner._behind.difference_update(numbers)
        return [mean - behind[i] if i in behind else mean for i, mean in enumerate(means)]

    def _average_tensors(self, owner: DataParallel, order: Sequence[int], gradients: Sequence[Any]) -> Sequence[Any]:
        """One collective for each group of gradients; in a captured step as an operation of the program."""
        made = list(gradients)
        limit = None if is_capturing() else owner._buffer_bytes
        for places in _travelling_together(gradients, order, limit):
            dtype = gradients[places[0]].dtype
            flat = get_operator("concat")([gradients[i].detach().reshape([-1]) for i in places])
            if owner._travels_narrow(dtype.numpy):
                flat = flat.cast("float16")
            all_reduce(flat, ReduceOp.AVG, owner._group)
            parts = get_operator("split")(flat.cast(dtype), [gradients[i].size for i in places])
            for i, part in zip(places, parts, strict=True):
                made[i] = part.reshape(gradients[i].shape)
        return made


def _travelling_together(gradients: Sequence[Any], order: Sequence[int], limit: int | None) -> list[list[int]]:
    """Numbers of gradients of one dtype on one device and, unless one alone is more, of at most ``limit`` bytes."""
    found: list[list[int]] = []
    last: dict[Any, tuple[list[int], int]] = {}
    for i in order:
        g = gradients[i]
        key, nbytes = (g.dtype, accelerator_of(g)), g.size * g.dtype.itemsize
        places, held = last.get(key, ([], 0))
        if not places or (limit is not None and held + nbytes > limit):
            places, held = [], 0
            found.append(places)
        places.append(i)
        last[key] = places, held + nbytes
    return found


class DataParallel(WrappedLayer):
    """``layers`` with the parameters and buffers of the group's first rank everywhere; calls are those of ``layers``.

    At the end of a backward pass gradients become their means over the ranks of ``group`` (default: all), so every rank
    must run the same backward passes; parameters that some ranks do not use are an error, CollectiveMismatch. Gradients
    travel together, ``comm_buffer_size`` MiB at a time. ``last_comm_buffer_size`` and ``find_unused_parameters`` are
    accepted for compatibility. Those with ``no_sync`` (experts) stay each rank's own. Parameters are ordinary tensors;
    the annotated way is ``shard_dataloader`` and friends.
    """

    def __init__(
        self,
        layers: Layer,
        strategy: object = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False,
        group: Group | None = None,
    ) -> None:
        super().__init__(layers)
        self._group = world_group() if group is None else group
        self._averaging, self._narrow = True, False
        self._buffer_bytes = int(comm_buffer_size * (1 << 20))
        self._behind: set[int] = set()  # parameters whose gradients differ between ranks, after no_sync()
        if not self._group.is_member():
            raise ValueError(f"DataParallel: this rank is not a member of {self._group!r}")
        if self._group.nranks > 1:
            for tensor in (*layers.parameters(), *layers.buffers()):
                if is_dist(tensor):
                    raise TypeError(f"DataParallel: {tensor.name} is a distributed tensor already")
            equalize(layers, self._group, split_too=True)
            self.init_reducer()

    def init_reducer(self) -> None:
        """Let gradients be averaged at the end of each backward pass."""
        _AverageHook(self).register(x for x in self._layers.parameters() if not x.stop_gradient and not is_expert(x))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Only add up this rank's gradients within the block; the next backward pass outside averages the sums."""
        before, self._averaging = self._averaging, False
        try:
            yield
        finally:
            self._averaging = before

    def _travels_narrow(self, dtype: Any) -> bool:
        """Whether gradients are rounded to float16 for the way (``DistributedStrategy.fp16_allreduce``)."""
        return self._narrow and dtype == np.float32

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss itself: gradients are averaged, not added."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing is left to do: gradients are averaged in the backward pass."""

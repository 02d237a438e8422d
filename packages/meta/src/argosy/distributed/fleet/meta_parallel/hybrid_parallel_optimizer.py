"""``HybridParallelOptimizer``: what ``fleet.distributed_optimizer`` makes of an optimizer on a grid of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.distributed.buffers import read_values
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import all_reduce
from argosy.distributed.fleet.layers.mpu.mp_ops import sum_of
from argosy.distributed.group import Group
from argosy.distributed.parameter_owners import ParameterOwners
from argosy.distributed.reduction import ReduceOp
from argosy.nn.clip import ClipGradByGlobalNorm, Pairs
from argosy.nn.meshes import first_mesh, on_mesh
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "DygraphShardingOptimizer", "DygraphShardingOptimizerV2", "HybridParallelClipGrad", "HybridParallelOptimizer",
    "WrappedOptimizer", "average", "average_gradients",
]  # fmt: skip

_BUCKET = 25 << 20


def average(tensors: Sequence[Tensor], group: Group) -> list[Any]:
    """The means of tensors over the ranks of a group, as arrays."""
    arrays = [read_values(x, "average") for x in tensors]
    return [np.asarray(mean) for mean in all_reduce_buckets(arrays, group.communicator, "avg", _BUCKET)]


def average_gradients(parameters: Sequence[Tensor], groups: Sequence[Group]) -> None:
    """Replace gradients by their means over the ranks of each group; all members must have the same ones."""
    held: list[tuple[Tensor, Any]] = [(p, p.grad) for p in parameters if not p.stop_gradient and p.grad is not None]
    for group in groups:
        if group.nranks == 1:
            continue
        if is_capturing():
            for _, grad in held:
                all_reduce(grad, ReduceOp.AVG, group)
            continue
        means = average([p.grad for p, _ in held], group)  # type: ignore[misc]
        for (parameter, _), mean in zip(held, means, strict=True):
            parameter._grad = Tensor._wrap(StridedArray(mean))


class HybridParallelClipGrad(ClipGradByGlobalNorm):
    """Clipping by the norm of the gradients of all ranks. Those of split layers (``is_distributed``) are added up over
    ``parts``, of the others every rank there has the same; each of ``owners`` has gradients of its own, of which the
    squares meet on the mesh of the first of all ``parameters``."""

    def __init__(
        self, clip: ClipGradByGlobalNorm, parts: Group | None, owners: Group | None = None,
        parameters: Sequence[Tensor] = (),
    ) -> None:  # fmt: skip
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._parts, self._owners, self._parameters = parts, owners, parameters

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with clipped gradients."""
        if not any(g is not None and getattr(p, "need_clip", True) for p, g in params_grads):
            self._square_total([])  # the others' norms are to be added up all the same
        return super().__call__(params_grads)

    def _square_total(self, pairs: Pairs, beside: Any = None) -> Any:
        parts = self._parts
        split = [pair for pair in pairs if parts is not None and getattr(pair[0], "is_distributed", False)]
        whole = [pair for pair in pairs if parts is None or not getattr(pair[0], "is_distributed", False)]
        found = []
        if split:
            assert parts is not None
            found.append(sum_of(super()._square_total(split), parts))
        if whole:
            found.append(super()._square_total(whole, *found))
        total = sum(found[1:], found[0]) if found else get_operator("full")([], 0, "float32")
        if self._owners is None:
            return total
        return sum_of(on_mesh(first_mesh(self._parameters), total).cast("float64"), self._owners)


class WrappedOptimizer:
    """``optimizer`` with other steps; otherwise it acts as that one."""

    def __init__(self, optimizer: Any) -> None:
        self._inner_opt = optimizer

    def __getattr__(self, name: str) -> Any:
        if name == "_inner_opt":
            raise AttributeError(name)
        return getattr(self._inner_opt, name)

    def step(self) -> None:
        """Update."""
        self._inner_opt.step()

    def minimize(self, loss: Tensor, *args: Any, **kwargs: Any) -> tuple[None, list[Any]]:
        """The backward pass is the caller's; :meth:`step`."""
        self.step()
        return None, []


class HybridParallelOptimizer(WrappedOptimizer):
    """An optimizer of a model whose layers, states or stages lie on several ranks. ``step`` averages gradients over the
    copies (a pipeline has done that), clips by the norm of all ranks, and where states are split over ranks (ZeRO 1)
    updates this rank's parameters, which it then gives to the others; those of a pipeline have gradients on their owner
    alone. Otherwise it acts as ``optimizer``.
    """

    _owners: ParameterOwners | None

    def __init__(self, optimizer: Optimizer, hcg: Any = None, strategy: Any = None) -> None:
        if hcg is not None and hcg.get_expert_parallel_world_size() > 1:
            raise NotImplementedError(
                "HybridParallelOptimizer: experts that ranks have of their own (ep_degree) are not implemented; "
                "annotate their weights: distributed.shard_tensor, Shard(0) along a mesh dimension"
            )
        piped = hcg is not None and hcg.get_pipe_parallel_world_size() > 1
        shards = None if hcg is None else _group_or_none(hcg.get_sharding_parallel_group())
        self._prepare(optimizer, None if hcg is None else _group_or_none(hcg.get_model_parallel_group()), shards)
        if piped:  # whose ranks find owners of the parameters that they hold
            self._owners = None
        self._copies = None if hcg is None or piped else hcg.get_dp_sep_parallel_group()
        self._hcg, self._strategy = hcg, strategy

    def _prepare(self, optimizer: Optimizer, parts: Group | None, shards: Group | None) -> None:
        """Clip over all ranks, split states over ``shards``."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__} takes an Optimizer, not {type(optimizer).__name__}")
        super().__init__(optimizer)
        self._owners = None if shards is None else ParameterOwners(optimizer._parameter_list, shards)
        clip = optimizer._grad_clip
        if type(clip) is ClipGradByGlobalNorm and (parts is not None or shards is not None):
            optimizer._grad_clip = HybridParallelClipGrad(clip, parts, shards, optimizer._parameter_list)

    def step(self) -> None:
        """Update every parameter that has a gradient, by the mean over the copies."""
        inner = self._inner_opt
        if self._copies is not None:
            average_gradients(inner._parameter_list, [self._copies])
        if self._owners is None:
            inner.step()
            shared = [p for p in inner._parameter_list if hasattr(p, "owners") and p.payload.is_held]
            if shared:
                shared[0].owners.publish(shared)
            return
        held: list[Any] = [(p, p.grad) for p in inner._parameter_list if not p.stop_gradient and p.grad is not None]
        parameters = [p for p, _ in held]
        means = self._owners.means(parameters, [g for _, g in held])
        self._update([(p, mean) for p, mean in zip(parameters, means, strict=True) if mean is not None], parameters)

    def _update(self, own: Pairs, parameters: Sequence[Tensor]) -> None:
        """Update those of ``parameters`` that are this rank's, by these gradients; take the others' from their
        owners."""
        assert self._owners is not None
        inner = self._inner_opt
        clip: Callable[[Pairs], Pairs] | None = inner._grad_clip
        clipped = own if clip is None else clip(own)
        inner._grad_clip = None
        try:
            inner.apply_gradients([(p, g) for p, g in clipped if g is not None])
        finally:
            inner._grad_clip = clip
        self._owners.publish(parameters)


class DygraphShardingOptimizer(HybridParallelOptimizer):
    """An optimizer of a grid whose states are split over ranks."""


class DygraphShardingOptimizerV2(DygraphShardingOptimizer):
    """An optimizer of a grid whose states are split over ranks, as the first one."""


def _group_or_none(group: Group) -> Group | None:
    return group if group.nranks > 1 else None

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
from argosy.distributed.parameter_owners import ParameterOwners, publish_updates
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.wrapped_layer import ExpertRanks, is_expert
from argosy.nn.clip import ClipGradByGlobalNorm, Pairs
from argosy.nn.meshes import first_mesh, on_mesh
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_autoparallel.api import shard_tensor
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.placement import Replicate
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
    squares meet on the mesh of the first of all ``parameters``. Gradients of parameters that are this rank's own
    (``no_sync``, as experts are) are added up over ``experts``."""

    def __init__(
        self, clip: ClipGradByGlobalNorm, parts: Group | None, owners: Group | None = None,
        parameters: Sequence[Tensor] = (), experts: Group | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._parts, self._owners, self._parameters, self._experts = parts, owners, parameters, experts

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with clipped gradients."""
        if not any(g is not None and getattr(p, "need_clip", True) for p, g in params_grads):
            self._square_total([])  # the others' norms are to be added up all the same
        return super().__call__(params_grads)

    def _square_total(self, pairs: Pairs, beside: Any = None) -> Any:
        if self._experts is None:
            return self._shared_total(pairs)
        own, mesh = [pair for pair in pairs if is_expert(pair[0])], first_mesh(self._parameters)
        squares = super()._square_total(own) if own else _zero(mesh)
        shared = self._shared_total([pair for pair in pairs if not is_expert(pair[0])])
        return on_mesh(mesh, shared) + sum_of(on_mesh(mesh, squares), self._experts)

    def _shared_total(self, pairs: Pairs) -> Any:
        parts = self._parts
        split = [pair for pair in pairs if parts is not None and getattr(pair[0], "is_distributed", False)]
        whole = [pair for pair in pairs if parts is None or not getattr(pair[0], "is_distributed", False)]
        found = []
        if split:
            assert parts is not None
            found.append(sum_of(super()._square_total(split), parts))
        if whole:
            found.append(super()._square_total(whole, *found))
        mesh = first_mesh(self._parameters)
        total = sum(found[1:], found[0]) if found else _zero(mesh)
        if self._owners is None:
            return total
        return sum_of(on_mesh(mesh, total).cast("float64"), self._owners)


def _zero(mesh: Any) -> Any:
    """The sum of nothing, where the others have theirs: on the first mesh of a pipeline's parameters."""
    made = get_operator("full")([], 0, "float32")
    return made if mesh is None else shard_tensor(made, mesh, [Replicate()] * mesh.ndim)


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
    alone. With an ``ep_degree`` the parameters with ``no_sync``, those of experts, are this rank's own: their gradients
    are the sums over the ranks with the same experts, divided by the number of ranks, as if one rank had all tokens;
    of ranks with parts of the same layers only where the parameters are not marked as ones of split sequences.
    Otherwise it acts as ``optimizer``.
    """

    _owners: ParameterOwners | None
    _expert_ranks: ExpertRanks | None

    def __init__(self, optimizer: Optimizer, hcg: Any = None, strategy: Any = None) -> None:
        piped = hcg is not None and hcg.get_pipe_parallel_world_size() > 1
        shards = None if hcg is None else _group_or_none(hcg.get_sharding_parallel_group())
        parts = None if hcg is None else _group_or_none(hcg.get_model_parallel_group())
        experts = None if hcg is None else _group_or_none(hcg.get_expert_parallel_group())
        self._prepare(optimizer, parts, shards, experts)
        if piped:  # whose ranks find owners of the parameters that they hold
            self._owners = None
        self._copies = None if hcg is None or piped else hcg.get_dp_sep_parallel_group()
        self._expert_ranks = None if hcg is None or piped else hcg.expert_ranks()
        self._hcg, self._strategy = hcg, strategy
        # What trainers ask for that average gradients themselves, before a step that finds them equal.
        self._dp_enable = self._copies is not None and hcg.get_data_parallel_world_size() > 1
        self._sep_enable = self._copies is not None and hcg.get_sep_parallel_world_size() > 1
        self._sharding_enable = shards is not None

    def _prepare(
        self, optimizer: Optimizer, parts: Group | None, shards: Group | None, experts: Group | None = None
    ) -> None:
        """Clip over all ranks, split states over ``shards``; ranks of ``experts`` have some of their own."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__} takes an Optimizer, not {type(optimizer).__name__}")
        super().__init__(optimizer)
        self._expert_ranks = None
        self._shared, self._own = optimizer._parameter_list, []
        if experts is not None:
            self._own = [p for p in optimizer._parameter_list if is_expert(p)]
            self._shared = [p for p in optimizer._parameter_list if not is_expert(p)]
        self._owners = None if shards is None else ParameterOwners(self._shared, shards)
        clip = optimizer._grad_clip
        if type(clip) is ClipGradByGlobalNorm and (parts or shards or experts) is not None:
            optimizer._grad_clip = HybridParallelClipGrad(clip, parts, shards, self._shared, experts)

    def step(self) -> None:
        """Update every parameter that has a gradient, by the mean over the copies."""
        inner = self._inner_opt
        if self._copies is not None:
            average_gradients(self._shared, [self._copies])
        self._average_experts()
        if self._owners is None:
            inner.step()
            publish_updates(inner._parameter_list)
            return
        held: list[Any] = [(p, p.grad) for p in self._shared if not p.stop_gradient and p.grad is not None]
        parameters = [p for p, _ in held]
        means = self._owners.means(parameters, [g for _, g in held])
        own = [(p, mean) for p, mean in zip(parameters, means, strict=True) if mean is not None]
        self._update([*own, *((p, p.grad) for p in self._own if p.grad is not None)], parameters)

    def _step(self, parameters_list: Any) -> None:
        """:meth:`step`, for trainers that have averaged the gradients: they are equal, and stay so."""
        self.step()

    def _average_experts(self) -> None:
        """Make the gradients of experts means over the tokens of all ranks."""
        if self._expert_ranks is None:
            return
        average_gradients(self._own, [self._expert_ranks.alike])
        with no_grad():
            for parameter in self._own:
                if parameter.grad is not None:
                    parameter._grad = parameter.grad / self._expert_ranks.divisor(parameter)

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

"""Optimizers whose states are split over the ranks of a group, each of which updates some parameters (ZeRO 1;
Rajbhandari et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.group import Group
from argosy.distributed.parameter_owners import ParameterOwners
from argosy.distributed.parameter_slices import make_buffers
from argosy.distributed.wrapped_layer import is_expert
from argosy.nn.clip import ClipGradByNorm, Pairs
from argosy.optimizer.optimizer import Optimizer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "DygraphShardingOptimizer", "DygraphShardingOptimizerV2", "OwnerOptimizer", "WrappedOptimizer", "group_or_none",
    "inner_optimizer", "shared_parameters", "update_clipped",
]  # fmt: skip


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


class OwnerOptimizer(WrappedOptimizer):
    """An optimizer of which each rank of ``group`` has the states of some of ``parameters``: it updates those by the
    gradients that are there, and gives them to the others. Parameters that are not among them are the rank's own.
    Otherwise it acts as ``optimizer``."""

    def __init__(self, optimizer: Any, parameters: Sequence[Tensor], group: Group) -> None:
        super().__init__(optimizer)
        self._base = inner_optimizer(optimizer, type(self).__name__)
        self._shared, self._owners = list(parameters), ParameterOwners(parameters, group)

    def step(self) -> None:
        """Update this rank's parameters that have a gradient."""
        shared = {id(p) for p in self._shared}
        mine = [p for p in self._base._parameter_list if id(p) not in shared or self._owners.is_own(p)]
        update_clipped(self._base, [(p, p.grad) for p in mine if not p.stop_gradient and p.grad is not None])
        self._owners.publish([p for p in self._shared if not p.stop_gradient])


class DygraphShardingOptimizer(OwnerOptimizer):
    """An optimizer whose states are split over the sharding group of ``hcg``. Trainers call ``reduce_gradients`` before
    ``step``; a pipeline has given its gradients to their owners, and takes their updates, by itself."""

    def __init__(self, optimizer: Any, hcg: Any = None) -> None:
        shards = None if hcg is None else group_or_none(hcg.get_sharding_parallel_group())
        self._is_split = shards is not None and hcg.get_pipe_parallel_world_size() == 1
        base = inner_optimizer(optimizer, type(self).__name__)
        if shards is None or not self._is_split:
            WrappedOptimizer.__init__(self, optimizer)
            return
        super().__init__(optimizer, shared_parameters(base, hcg.get_expert_parallel_group()), shards)

    def reduce_gradients(self, parameter_list: Sequence[Tensor], hcg: Any) -> None:
        """Give the gradients of parameters, as means over the group, to their owners; the other ranks keep none. All
        ranks have the same ones."""
        if not self._is_split:
            return
        shared = {id(p) for p in self._shared}
        held: list[Any] = [p for p in parameter_list if id(p) in shared and p.grad is not None and not p.stop_gradient]
        for parameter, mean in zip(held, self._owners.means(held, [p.grad for p in held]), strict=True):
            parameter._grad = mean

    def filter_parameters(self, parameter_list: Sequence[Tensor], hcg: Any) -> list[Tensor]:
        """Those that this rank updates."""
        others = set() if not self._is_split else {id(p) for p in self._shared if not self._owners.is_own(p)}
        return [p for p in parameter_list if id(p) not in others]

    def step(self) -> None:
        """Update this rank's parameters that have a gradient."""
        if self._is_split:
            super().step()
        else:
            WrappedOptimizer.step(self)

    @property
    def _param2rank(self) -> dict[str, int]:
        return {p.name: self._owners.owner(p) for p in self._shared} if self._is_split else {}


class DygraphShardingOptimizerV2(WrappedOptimizer):
    """An optimizer each of whose ranks in the sharding group of ``hcg`` updates an equal part of the buffers in which
    parameters lie behind each other (``split_param``), at most ``limit`` bytes in one; states are flat, of this part's
    elements. Trainers call ``reduce_gradients`` before ``step``: gradients are those of the slices of parameters then,
    which ``filter_parameters`` gives.

    Raises NotImplementedError for rules and clips that look at whole parameters, and for groups of parameters.
    """

    def __init__(self, optimizer: Any, hcg: Any, limit: int = 256 << 20) -> None:
        super().__init__(optimizer)
        self._base = base = inner_optimizer(optimizer, type(self).__name__)
        if base._reads_whole_parameters or type(base._grad_clip) is ClipGradByNorm or len(base._groups) > 1:
            raise NotImplementedError(
                f"{type(self).__name__}: split_param with {type(base).__name__}, whose rule looks at whole parameters, "
                "with ClipGradByNorm or with groups of parameters is not implemented; leave split_param out"
            )
        shared = shared_parameters(base, hcg.get_expert_parallel_group())
        chosen = [p for p in shared if not p.stop_gradient]
        self._comm_buffer_list = make_buffers(chosen, hcg.get_sharding_parallel_group(), limit)
        pairs = [pair for b in self._comm_buffer_list for pair in zip(b.params, b.slices, strict=True)]
        self._slice_params: dict[str, Tensor | None] = {p.name: each for p, each in pairs}

    def reduce_gradients(self, parameter_list: Sequence[Tensor], hcg: Any) -> None:
        """Give this rank's slices the means of the gradients over the group."""
        for buffer in self._comm_buffer_list:
            buffer.reduce()

    def filter_parameters(self, parameter_list: Sequence[Tensor], hcg: Any) -> list[Tensor]:
        """The slices of parameters that this rank updates; of those that are its own the whole."""
        found = [self._slice_params.get(p.name, p) for p in parameter_list]
        return [p for p in found if p is not None]

    def step(self) -> None:
        """Update this rank's slices that have a gradient, and give them to the others."""
        for buffer in self._comm_buffer_list:
            buffer.refresh()
        own = self.filter_parameters(self._base._parameter_list, None)
        update_clipped(self._base, [(p, p.grad) for p in own if not p.stop_gradient and p.grad is not None])
        for buffer in self._comm_buffer_list:
            buffer.publish()

    def _set_all_gather_overlap_forward(self, all_gather_overlap_forward: bool, layers: Any) -> None:
        """Nothing: parameters are whole when :meth:`step` returns, so that nobody reads old ones."""

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Forget the gradients of parameters and slices."""
        self._inner_opt.clear_grad(set_to_zero)
        for each in self._slice_params.values():
            if each is not None:
                each._grad = None


def update_clipped(base: Optimizer, own: Pairs) -> None:
    """Clip, which all ranks do together, and update."""
    clip: Callable[[Pairs], Pairs] | None = base._grad_clip
    clipped = own if clip is None else clip(own)
    base._grad_clip = None
    try:
        base.apply_gradients([(p, g) for p, g in clipped if g is not None])
    finally:
        base._grad_clip = clip


def inner_optimizer(optimizer: Any, taker: str) -> Optimizer:
    """The optimizer within wrappers. Raises TypeError, as ``taker`` does, for what has none."""
    found = optimizer
    while not isinstance(found, Optimizer):
        found = vars(found).get("_inner_opt") if hasattr(found, "__dict__") else None
        if found is None:
            raise TypeError(f"{taker} takes an Optimizer, not {type(optimizer).__name__}")
    return found


def shared_parameters(optimizer: Optimizer, experts: Group | None) -> list[Tensor]:
    """The parameters that ranks have together: all but those of experts, where ``experts`` are several ranks."""
    spread = experts is not None and experts.nranks > 1
    return [p for p in optimizer._parameter_list if not (spread and is_expert(p))]


def group_or_none(group: Group) -> Group | None:
    """The group, where it has several members."""
    return group if group.nranks > 1 else None

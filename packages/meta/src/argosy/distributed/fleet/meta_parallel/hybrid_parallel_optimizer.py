"""``HybridParallelOptimizer``: what ``fleet.distributed_optimizer`` makes of an optimizer on a grid of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.distributed.buffers import readable
from argosy.distributed.captured import capturing
from argosy.distributed.collective import all_reduce, broadcast
from argosy.distributed.fleet.layers.mpu.mp_ops import sum_of
from argosy.distributed.group import Group
from argosy.distributed.reduction import ReduceOp
from argosy.nn.clip import ClipGradByGlobalNorm, Pairs
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel.bucketing import all_reduce_together
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["HybridParallelClipGrad", "HybridParallelOptimizer", "average_gradients"]

_BUCKET = 25 << 20


def average_gradients(parameters: Sequence[Tensor], groups: Sequence[Group]) -> None:
    """Replace gradients by their means over the ranks of each group; all members must have the same ones."""
    held: list[tuple[Tensor, Any]] = [(p, p.grad) for p in parameters if not p.stop_gradient and p.grad is not None]
    for group in groups:
        if group.nranks == 1:
            continue
        if capturing():
            for _, grad in held:
                all_reduce(grad, ReduceOp.AVG, group)
            continue
        arrays = [readable(p.grad, "average_gradients") for p, _ in held]  # type: ignore[arg-type]
        means = all_reduce_together(arrays, group.communicator, "avg", _BUCKET)
        for (parameter, _), mean in zip(held, means, strict=True):
            parameter._grad = Tensor._wrap(Strided(np.asarray(mean)))


class HybridParallelClipGrad(ClipGradByGlobalNorm):
    """Clipping by the norm of the gradients of all ranks: those of split layers (``is_distributed``) are added up over
    ``group``, of the others every rank has the same."""

    def __init__(self, clip: ClipGradByGlobalNorm, group: Group) -> None:
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._group = group

    def _total(self, pairs: Pairs, beside: Any = None) -> Any:
        split = [(p, g) for p, g in pairs if getattr(p, "is_distributed", False)]
        whole = [(p, g) for p, g in pairs if not getattr(p, "is_distributed", False)]
        if not split:
            return super()._total(whole)
        total = super()._total(split)
        total = sum_of(total, self._group)
        return total if not whole else total + super()._total(whole, total)


class HybridParallelOptimizer:
    """An optimizer of a model whose layers, states or stages lie on several ranks. ``step`` averages gradients over the
    copies (a pipeline has done that), clips by the norm of all ranks, and where states are split over ranks (ZeRO 1)
    updates this rank's parameters, which it then gives to the others. Otherwise it acts as ``optimizer``.
    """

    def __init__(self, optimizer: Optimizer, hcg: Any = None, strategy: Any = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"HybridParallelOptimizer takes an Optimizer, not {type(optimizer).__name__}")
        self._inner_opt, self._hcg, self._strategy = optimizer, hcg, strategy
        clip = optimizer._grad_clip
        if hcg is not None and type(clip) is ClipGradByGlobalNorm and hcg.get_model_parallel_world_size() > 1:
            optimizer._grad_clip = HybridParallelClipGrad(clip, hcg.get_model_parallel_group())
        self._owners: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "_inner_opt":
            raise AttributeError(name)
        return getattr(self._inner_opt, name)

    def step(self) -> None:
        """Update every parameter that has a gradient, by the mean over the copies."""
        hcg, inner = self._hcg, self._inner_opt
        if hcg is None or hcg.get_pipe_parallel_world_size() > 1:
            inner.step()
            return
        shards = hcg.get_sharding_parallel_group()
        average_gradients(inner._parameter_list, [hcg.get_dp_sep_parallel_group(), shards])
        if shards.nranks == 1:
            inner.step()
        else:
            self._step_of_shards(shards)

    def minimize(self, loss: Tensor, *args: Any, **kwargs: Any) -> tuple[None, list[Any]]:
        """The backward pass is the caller's; :meth:`step`."""
        self.step()
        return None, []

    def _step_of_shards(self, group: Group) -> None:
        """Each member updates its parameters and has states of those alone."""
        inner = self._inner_opt
        parameters = inner._parameter_list
        if not self._owners:
            self._owners = _owners(parameters, group.nranks)
        clip: Callable[[Pairs], Pairs] | None = inner._grad_clip
        pairs: Pairs = [(p, p.grad) for p in parameters if not p.stop_gradient and p.grad is not None]
        if clip is not None:
            pairs, inner._grad_clip = clip(pairs), None
        try:
            inner.apply_gradients([(p, g) for p, g in pairs if g is not None and self._owners[id(p)] == group.rank])
        finally:
            inner._grad_clip = clip
        for parameter, _ in pairs:
            broadcast(parameter, group.ranks[self._owners[id(parameter)]], group)


def _owners(parameters: Sequence[Tensor], ranks: int) -> dict[int, int]:
    """The member that has the states of each parameter: the largest first, to whoever has least."""
    loads, found = [0] * ranks, {}
    for parameter in sorted(parameters, key=lambda p: -p.size):
        owner = loads.index(min(loads))
        loads[owner] += parameter.size
        found[id(parameter)] = owner
    return found

"""What the switches of a ``DistributedStrategy`` do to models and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.amp import auto_cast
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import WrappedOptimizer, average
from argosy.distributed.fleet.strategy import DistributedStrategy
from argosy.distributed.group import Group
from argosy.nn.batch_norm import SyncBatchNorm
from argosy.nn.layer import Layer
from argosy.optimizer.adam import Adam
from argosy.optimizer.moments import Lamb
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad

__all__ = ["prepare_model", "prepare_optimizer", "wrap_optimizer"]


def prepare_model(model: Layer, strategy: DistributedStrategy) -> Layer:
    """The model with statistics of batches over all ranks, and forward passes in mixed precision, where asked for."""
    if strategy.sync_batch_norm:
        model = SyncBatchNorm.convert_sync_batchnorm(model)
    if strategy.amp:
        given = strategy.amp_configs
        dtype = "bfloat16" if given["use_pure_bf16"] else "float16"
        level = "O2" if given["use_pure_bf16"] or given["use_pure_fp16"] else "O1"
        white, black = (given[name] or None for name in ("custom_white_list", "custom_black_list"))
        precision = partial(auto_cast, True, white, black, level, dtype)
        model.forward = partial(_run_under, precision, model.forward)  # type: ignore[method-assign]
    return model


def _run_under(precision: Callable[[], Any], forward: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    with precision():
        return forward(*inputs, **kwargs)


def prepare_optimizer(optimizer: Optimizer, strategy: DistributedStrategy) -> Any:
    """The optimizer to begin with: Lamb in the place of Adam where asked for. Raises TypeError for another one."""
    if not strategy.lamb:
        return optimizer
    if not isinstance(optimizer, Adam):
        raise TypeError(f"DistributedStrategy.lamb makes Lamb of Adam, not of {type(optimizer).__name__}")
    given = strategy.lamb_configs
    names = given["exclude_from_weight_decay"]
    rate: Any = optimizer._scheduler if optimizer._scheduler is not None else optimizer.get_lr()
    return Lamb(
        rate, given["lamb_weight_decay"], optimizer._beta1, optimizer._beta2, optimizer._epsilon,
        parameters=optimizer._parameter_list, grad_clip=optimizer._grad_clip,
        exclude_from_weight_decay_fn=lambda p: any(name in p.name for name in names),
    )  # fmt: skip


def wrap_optimizer(optimizer: Any, strategy: DistributedStrategy, copies: Group) -> Any:
    """The optimizer whose steps are those that the strategy asks for."""
    if strategy.localsgd:
        optimizer = LocalSGDOptimizer(optimizer, copies, **strategy.localsgd_configs)
    if strategy.gradient_merge:
        optimizer = GradientMergeOptimizer(optimizer, **strategy.gradient_merge_configs)
    return optimizer


class GradientMergeOptimizer(WrappedOptimizer):
    """Every ``k_steps``-th step updates, by the sum of the gradients since, or with ``avg`` by their mean; the others
    leave gradients to add up."""

    def __init__(self, optimizer: Any, k_steps: int, avg: bool) -> None:
        super().__init__(optimizer)
        if k_steps < 1:
            raise ValueError(f"DistributedStrategy.gradient_merge_configs: k_steps is a number from 1, not {k_steps!r}")
        self._k_steps, self._avg, self._merged = k_steps, avg, 0

    def step(self) -> None:
        """Update when it is time. Raises NotImplementedError in a captured step."""
        if is_capturing():
            raise NotImplementedError(
                "DistributedStrategy.gradient_merge in a captured step is not implemented; distributed.to_static does "
                "it: Strategy.gradient_merge"
            )
        self._merged += 1
        if self._merged % self._k_steps:
            return
        if self._avg:
            with no_grad():
                for parameter in self._inner_opt._parameter_list:
                    if parameter.grad is not None:
                        parameter._grad = parameter.grad / self._k_steps
        self._inner_opt.step()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """After an update; otherwise gradients stay."""
        if self._merged % self._k_steps == 0:
            self._inner_opt.clear_grad(set_to_zero)

    clear_gradients = clear_grad


class LocalSGDOptimizer(WrappedOptimizer):
    """Ranks step by their own gradients, and take the mean of their parameters after every ``k_steps`` steps; up to
    step ``begin_step`` after each one (Lin et al., 2020)."""

    def __init__(self, optimizer: Any, copies: Group, k_steps: int, begin_step: int) -> None:
        super().__init__(optimizer)
        if k_steps < 1:
            raise ValueError(f"DistributedStrategy.localsgd_configs: k_steps is a number from 1, not {k_steps!r}")
        self._copies, self._k_steps, self._begin_step, self._steps = copies, k_steps, begin_step, 0

    def step(self) -> None:
        """Update by this rank's gradients; then, when it is time, by the others' parameters."""
        if is_capturing():
            raise NotImplementedError("DistributedStrategy.localsgd in a captured step is not implemented")
        self._inner_opt.step()
        self._steps += 1
        if self._steps <= self._begin_step or (self._steps - self._begin_step) % self._k_steps == 0:
            parameters = self._inner_opt._parameter_list
            for parameter, mean in zip(parameters, average(parameters, self._copies), strict=True):
                parameter.set_value(mean)

"""What the switches of a ``DistributedStrategy`` do to models and optimizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import ceil, isfinite, sqrt
from typing import Any

from argosy.amp import auto_cast
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.fleet.gradient_compression import DGCOptimizer
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import average
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import WrappedOptimizer
from argosy.distributed.fleet.recompute.recompute import recompute_layers
from argosy.distributed.fleet.strategy import DistributedStrategy
from argosy.distributed.group import Group
from argosy.nn.batch_norm import SyncBatchNorm
from argosy.nn.layer import Layer
from argosy.optimizer.adam import Adam
from argosy.optimizer.lars import LarsMomentumOptimizer
from argosy.optimizer.moments import Lamb
from argosy.optimizer.momentum import Momentum
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_tensorcore.tensor import Tensor

__all__ = ["prepare_model", "prepare_optimizer", "wrap_optimizer"]


def prepare_model(model: Layer, strategy: DistributedStrategy) -> Layer:
    """The model with statistics of batches over all ranks, rounded products, recomputed layers and forward passes in
    mixed precision, where asked for. Raises ValueError for checkpoints that are no layers of it."""
    if strategy.sync_batch_norm:
        model = SyncBatchNorm.convert_sync_batchnorm(model)
    if strategy.qat:
        _round_products(model, **strategy.qat_configs)
    if strategy.recompute:
        given = strategy.recompute_configs
        recompute_layers(model, given["checkpoints"], "DistributedStrategy.recompute_configs", given["enable_offload"])
    if strategy.amp:
        given = strategy.amp_configs
        dtype = "bfloat16" if given["use_pure_bf16"] else "float16"
        level = "O2" if given["use_pure_bf16"] or given["use_pure_fp16"] else "O1"
        white, black = (given[name] or None for name in ("custom_white_list", "custom_black_list"))
        precision = partial(auto_cast, True, white, black, level, dtype)
        model.forward = partial(_run_under, precision, model.forward)  # type: ignore[method-assign]
    return model


def _round_products(
    model: Layer, channel_wise_abs_max: bool, weight_bits: int, activation_bits: int,
    not_quant_pattern: Sequence[str], algo: str,
) -> None:  # fmt: skip
    """Put layers that round their weights and inputs in the place of others, where names have no such pattern."""
    if algo:
        raise NotImplementedError(f"DistributedStrategy.qat_configs: algo={algo!r}; scales are largest absolute values")
    for name, layer in model.named_sublayers():
        if any(pattern in name for pattern in not_quant_pattern):
            vars(layer)["skip_quant"] = True
    kind = "channel_wise_abs_max" if channel_wise_abs_max else "abs_max"
    library = import_module("argosy.quantization.imperative")  # by name: no core imports a domain's library
    library.ImperativeQuantAware(
        weight_quantize_type=kind, weight_bits=weight_bits, activation_bits=activation_bits, onnx_format=True
    ).quantize(model)


def _run_under(precision: Callable[[], Any], forward: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    with precision():
        return forward(*inputs, **kwargs)


def prepare_optimizer(optimizer: Optimizer, strategy: DistributedStrategy) -> Any:
    """The optimizer to begin with: Lamb in the place of Adam, LARS in that of Momentum where asked for. Raises
    TypeError for another one."""
    if strategy.lars:
        return _lars_of(optimizer, strategy)
    if not strategy.lamb:
        return optimizer
    if not isinstance(optimizer, Adam):
        raise TypeError(f"DistributedStrategy.lamb makes Lamb of Adam, not of {type(optimizer).__name__}")
    given = strategy.lamb_configs
    names = given["exclude_from_weight_decay"]
    return Lamb(
        _rate_of(optimizer), given["lamb_weight_decay"], optimizer._beta1, optimizer._beta2, optimizer._epsilon,
        parameters=optimizer._parameter_list, grad_clip=optimizer._grad_clip,
        exclude_from_weight_decay_fn=lambda p: any(name in p.name for name in names),
    )  # fmt: skip


def _rate_of(optimizer: Optimizer) -> Any:
    return optimizer._scheduler if optimizer._scheduler is not None else optimizer.get_lr()


def _lars_of(optimizer: Optimizer, strategy: DistributedStrategy) -> LarsMomentumOptimizer:
    if not isinstance(optimizer, Momentum):
        raise TypeError(f"DistributedStrategy.lars makes LARS of Momentum, not of {type(optimizer).__name__}")
    return LarsMomentumOptimizer(
        _rate_of(optimizer), optimizer._momentum, parameter_list=optimizer._parameter_list,
        regularization=optimizer._weight_decay, grad_clip=optimizer._grad_clip,
        multi_precision=optimizer._multi_precision, rescale_grad=optimizer._rescale, **strategy.lars_configs,
    )  # fmt: skip


def wrap_optimizer(optimizer: Any, strategy: DistributedStrategy, copies: Group) -> Any:
    """The optimizer whose steps are those that the strategy asks for."""
    if strategy.asp:
        optimizer = import_module("argosy.incubate.asp").decorate(optimizer)
    if strategy.dgc:
        optimizer = DGCOptimizer(optimizer, copies, **strategy.dgc_configs)
    if strategy.adaptive_localsgd:
        optimizer = AdaptiveLocalSGDOptimizer(optimizer, copies, **strategy.adaptive_localsgd_configs)
    elif strategy.localsgd:
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

    _switch = "localsgd"

    def __init__(self, optimizer: Any, copies: Group, k_steps: int, begin_step: int) -> None:
        super().__init__(optimizer)
        if k_steps < 1:
            raise ValueError(f"DistributedStrategy.{self._switch}_configs: k_steps is a number from 1, not {k_steps!r}")
        self._copies, self._k_steps, self._begin_step, self._steps = copies, k_steps, begin_step, 0
        self._latest = begin_step  # the step that has averaged

    def step(self) -> None:
        """Update by this rank's gradients; then, when it is time, by the others' parameters."""
        self._step()

    def _step(self) -> bool:
        """Update; whether parameters were averaged after ``begin_step``."""
        if is_capturing():
            raise NotImplementedError(f"DistributedStrategy.{self._switch} in a captured step is not implemented")
        self._inner_opt.step()
        self._steps += 1
        first = self._steps <= self._begin_step
        if not first and self._steps - self._latest < self._k_steps:
            return False
        self._latest = self._steps
        parameters = self._inner_opt._parameter_list
        for parameter, mean in zip(parameters, average(parameters, self._copies), strict=True):
            parameter.set_value(mean)
        return not first


class AdaptiveLocalSGDOptimizer(LocalSGDOptimizer):
    """LocalSGD whose number of steps grows as the loss falls and the rate does: after each average it is
    ``ceil(sqrt(init_k_steps * lr0 * loss / (lr * loss0)))`` from 1 to 16, of the mean loss over ranks and that of the
    first step (Wang and Joshi, 2019)."""

    _switch = "adaptive_localsgd"

    def __init__(self, optimizer: Any, copies: Group, init_k_steps: int, begin_step: int) -> None:
        super().__init__(optimizer, copies, init_k_steps, begin_step)
        self._init_k_steps = init_k_steps
        self._first: tuple[float, float] | None = None  # loss and rate

    def step(self) -> None:
        """Raises TypeError: it needs the loss."""
        raise TypeError("DistributedStrategy.adaptive_localsgd needs the loss: call optimizer.minimize(loss)")

    def minimize(self, loss: Tensor, *args: Any, **kwargs: Any) -> tuple[None, list[Any]]:
        """The backward pass is the caller's; a step, and a new number of steps after an average."""
        rate = self._inner_opt.get_lr()
        if self._first is None:
            self._first = self._mean_of(loss), rate
        if self._step():
            loss0, rate0 = self._first
            grown = self._init_k_steps * rate0 * self._mean_of(loss) / (rate * loss0)
            self._k_steps = min(16, max(1, ceil(sqrt(max(0.0, grown))))) if isfinite(grown) else 1
        return None, []

    def _mean_of(self, loss: Tensor) -> float:
        return float(average([loss], self._copies)[0])

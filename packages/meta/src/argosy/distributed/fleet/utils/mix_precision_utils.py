"""Models of 16 bits whose gradients are float32: ``main_grad`` of a parameter is the sum of what backward passes gave.

It is ``grad`` itself, which is float32 here, so that clipping, averaging over ranks and scaling of losses need no forms
of their own.
"""

from __future__ import annotations

from typing import Any

from argosy.amp import GradScaler
from argosy.distributed.fleet.training import obtain_optimizer_parameters_list
from argosy.distributed.wrapped_layer import WrappedLayer
from argosy.nn.layer import Layer
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.rare_members import link_main_gradient
from argosy_tensorcore.tensor import Tensor

__all__ = ["MixPrecisionLayer", "MixPrecisionOptimizer", "MixPrecisionScaler"]


class MixPrecisionLayer(WrappedLayer):
    """``layers``, whose gradients are float32 in ``main_grad``. Raises ValueError for another ``dtype`` than float16
    and bfloat16."""

    def __init__(self, layers: Layer, dtype: str = "float16") -> None:
        super().__init__(layers)
        if as_dtype(dtype).name not in ("float16", "bfloat16"):
            raise ValueError(f"MixPrecisionLayer(dtype={dtype!r}): expected 'float16' or 'bfloat16'")
        every = getattr(layers, "whole_parameters", layers.parameters)  # all ranks of a pipeline capture one step
        for parameter in every():
            if not parameter.stop_gradient:
                parameter.register_hook(_widen)
                link_main_gradient(parameter)


def _widen(gradient: Tensor) -> Tensor:
    return gradient.cast("float32")


class MixPrecisionOptimizer:
    """``optimizer``, which updates by ``main_grad``."""

    def __init__(self, optimizer: Any) -> None:
        self._inner_opt = optimizer
        self._parameter_list = obtain_optimizer_parameters_list(optimizer)

    def step(self) -> None:
        """One update."""
        self._inner_opt.step()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Forget the gradients."""
        self._inner_opt.clear_grad(set_to_zero)

    def __getattr__(self, item: str) -> Any:
        return getattr(self._inner_opt, item)


class MixPrecisionScaler:
    """``scaler``, which looks at ``main_grad``."""

    def __init__(self, scaler: GradScaler) -> None:
        self._inner_scaler = scaler

    def __getattr__(self, item: str) -> Any:
        return getattr(self._inner_scaler, item)

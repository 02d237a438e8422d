"""Learned step size quantisation (Esser et al., ICLR 2020): what one step stands for is trained with the weights."""

from __future__ import annotations

from typing import Any

from argosy.framework.param_attr import ParamAttr
from argosy.nn.initializer import Constant
from argosy.quantization.base import BaseQuanter
from argosy.quantization.factory import QuanterFactory
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore import naming

__all__ = ["FakeQuanterLSQ", "FakeQuanterLSQLayer"]

_where: Any = get_operator("where")
_ones_like: Any = get_operator("ones_like")


class FakeQuanterLSQLayer(BaseQuanter):
    """``round(clip(x / step, -limit, limit)) * step`` with ``limit = 2**(bits - 1) - 1``; the step is a parameter.

    Rounding has the gradient of the identity; that of the step is multiplied by ``1 / sqrt(elements * limit)``. The
    first call whose input is not all zeros sets it to ``2 * mean|x| / sqrt(limit)``. layer: whose input or weight it
    is; nothing is asked of it.
    """

    def __init__(self, layer: Any, bit_length: int = 8, dtype: object = "float32", name: str | None = None) -> None:
        super().__init__()
        self._bit_length, self._limit = bit_length, 2 ** (bit_length - 1) - 1
        attr = ParamAttr(name=naming.generate(f"{name or 'quant_dequant'}.step"), initializer=Constant(0.0))
        self._step = self.create_parameter([1], attr, dtype)

    def forward(self, input: Any) -> Any:
        """The input, rounded."""
        with no_grad():
            start = (input.detach().abs().mean() * (2 * self._limit**-0.5)).astype(self._step.dtype)
            write(self._step, _where(self._step == 0, start, self._step))
        share = (_ones_like(input).sum() * self._limit).astype(self._step.dtype) ** -0.5
        step = (self._step * share + (self._step * (1 - share)).detach()).astype(input.dtype)
        steps = (input / _where(step == 0, _ones_like(step), step)).clip(-self._limit, self._limit)
        return (steps + (steps.round() - steps).detach()) * step

    def scales(self) -> Any:
        """What the largest integer stands for, [1]."""
        return self._step.detach() * self._limit

    def zero_points(self) -> None:
        """None: values are symmetric."""

    def quant_axis(self) -> int:
        """-1: one scale."""
        return -1

    def bit_length(self) -> int:
        """Bits of an integer."""
        return self._bit_length


class FakeQuanterLSQ(QuanterFactory):
    """Makes quanters with a trained step. bit_length: of an integer; name: where names of their tensors begin."""

    made = FakeQuanterLSQLayer

    def __init__(self, bit_length: int = 8, dtype: object = "float32", name: str | None = None) -> None:
        super().__init__(bit_length=bit_length, dtype=dtype, name=name)

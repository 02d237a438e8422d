"""Quantisation by a moving average of the largest absolute value."""

from __future__ import annotations

from typing import Any

from argosy.framework.param_attr import ParamAttr
from argosy.nn.initializer import Constant
from argosy.quantization.base import BaseQuanter
from argosy.quantization.factory import QuanterFactory
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore import naming

__all__ = ["FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer"]


class _StraightThrough(PyLayer):
    """Rounding to a multiple of ``scale / limit``, halves away from 0, whose gradient is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, limit: int) -> Any:
        """``round(clip(x, -scale, scale) * limit / scale) * scale / limit``."""
        steps = x.minimum(scale).maximum(-scale) * limit / scale
        return steps.sign() * (steps.abs() + 0.5).floor() * scale / limit

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient, for ``x``."""
        return grads[0], None


class FakeQuanterWithAbsMaxObserverLayer(BaseQuanter):
    """In training ``state = rate * state + 1``, ``accum = rate * accum + max|x|`` and ``scale = accum / state``; always
    ``round(clip(x, -scale, scale) / scale * (2**(bits - 1) - 1))``, multiplied back. Gradients pass as they are.

    layer: whose input or weight it is; nothing is asked of it.
    """

    def __init__(
        self,
        layer: Any,
        name: str | None = None,
        moving_rate: float = 0.9,
        bit_length: int = 8,
        dtype: object = "float32",
    ) -> None:
        super().__init__()
        self._moving_rate, self._bit_length = moving_rate, bit_length
        self._scale = self._kept(name, "scale", 0.001, dtype)
        self._state = self._kept(name, "state", 1.0, dtype)
        self._accum = self._kept(name, "accum", 1.0, dtype)

    def _kept(self, name: str | None, what: str, value: float, dtype: object) -> Any:
        attr = ParamAttr(
            name=naming.generate(f"{name or 'quant_dequant'}.{what}"), initializer=Constant(value), trainable=False
        )
        return self.create_parameter([1], attr, dtype)

    def forward(self, input: Any) -> Any:
        """The input, rounded. In training the scale moves first."""
        if self.training:
            with no_grad():
                self._move(input.detach().abs().max().astype(self._accum.dtype))
        return _StraightThrough.apply(input, self._scale.astype(input.dtype), 2 ** (self._bit_length - 1) - 1)

    def _move(self, largest: Any) -> None:
        state, accum = self._state * self._moving_rate + 1.0, self._accum * self._moving_rate + largest
        for kept, value in ((self._state, state), (self._accum, accum), (self._scale, accum / state)):
            write(kept, value)

    def scales(self) -> Any:
        """The scale, [1]."""
        return self._scale

    def zero_points(self) -> None:
        """None: values are symmetric."""

    def quant_axis(self) -> int:
        """-1: one scale."""
        return -1

    def bit_length(self) -> int:
        """Bits of an integer."""
        return self._bit_length


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Makes quanters by a moving average of the largest absolute value.

    moving_rate: what is kept of the average; bit_length: of an integer; name: where names of their tensors begin.
    """

    made = FakeQuanterWithAbsMaxObserverLayer

    def __init__(
        self, moving_rate: float = 0.9, bit_length: int = 8, dtype: object = "float32", name: str | None = None
    ) -> None:
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

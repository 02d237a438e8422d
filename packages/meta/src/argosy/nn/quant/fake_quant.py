"""Layers that round what passes to what integers stand for, or keep its scale: quantisation simulated in float."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike
from argosy.framework.param_attr import ParamAttr
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore import naming

__all__ = [
    "FakeQuantAbsMax", "FakeQuantChannelWiseAbsMax", "FakeQuantMovingAverageAbsMax", "MovingAverageAbsMaxScale",
    "MovingMaximum", "StraightThrough", "make_fake_quant",
]  # fmt: skip


class StraightThrough(PyLayer):
    """Rounding to a multiple of ``scale / limit``, halves away from 0, whose gradient is that of the identity."""

    @staticmethod
    def forward(ctx: Any, x: TensorLike, scale: Any, limit: int) -> Any:
        """``round(clip(x, -scale, scale) * limit / scale) * scale / limit``; 0 where the scale is 0."""
        divisor = scale + (scale == 0).astype(scale.dtype)
        steps = x.minimum(scale).maximum(-scale) * limit / divisor
        return steps.sign() * (steps.abs() + 0.5).floor() * scale / limit

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient, for ``x``."""
        return grads[0], None


class _ScaledLayer(Layer):
    """A layer with numbers that are kept beside its parameters and not trained."""

    _scale: Any

    def _create_state(self, prefix: str, what: str, value: float, dtype: object, size: int = 1) -> Any:
        attr = ParamAttr(name=naming.generate(f"{prefix}.{what}"), initializer=Constant(value), trainable=False)
        return self.create_parameter([size], attr, dtype)

    def _check_ranks(self, reduce_type: str | None) -> None:
        if reduce_type is not None:
            raise NotImplementedError(
                f"{type(self).__name__}(): reduce_type={reduce_type!r}: scales over several ranks"
            )


class MovingMaximum(_ScaledLayer):
    """``state = rate * state + 1``, ``accum = rate * accum + max|x|`` and ``scale = accum / state``, in training."""

    def _keep(self, prefix: str, moving_rate: float, dtype: object, scale: float, start: float) -> None:
        self._moving_rate = moving_rate
        self._scale = self._create_state(prefix, "scale", scale, dtype)
        self._state = self._create_state(prefix, "state", start, dtype)
        self._accum = self._create_state(prefix, "accum", start, dtype)

    def _observe(self, input: Any) -> None:
        """Let the scale move; in evaluation it stays."""
        if not self.training:
            return
        with no_grad():
            largest = input.detach().abs().max().astype(self._accum.dtype)
            state, accum = self._state * self._moving_rate + 1.0, self._accum * self._moving_rate + largest
            for kept, value in ((self._state, state), (self._accum, accum), (self._scale, accum / state)):
                write(kept, value)

    def _fake_quantize(self, input: Any, bits: int) -> Any:
        return StraightThrough.apply(input, self._scale.astype(input.dtype), 2 ** (bits - 1) - 1)


class FakeQuantMovingAverageAbsMax(MovingMaximum):
    """Rounds by a moving average of the largest magnitude, which moves in training only."""

    def __init__(
        self,
        name: str | None = None,
        moving_rate: float = 0.9,
        quant_bits: int = 8,
        dtype: object = "float32",
        reduce_type: str | None = None,
    ) -> None:
        super().__init__()
        self._check_ranks(reduce_type)
        self._quant_bits = quant_bits
        self._keep(name or "quant_dequant", moving_rate, dtype, 0.001, 1.0)

    def forward(self, input: TensorLike) -> Any:
        """The input, rounded."""
        self._observe(input)
        return self._fake_quantize(input, self._quant_bits)


class MovingAverageAbsMaxScale(MovingMaximum):
    """Keeps a moving average of the largest magnitude, which moves in training only."""

    def __init__(
        self,
        name: str | None = None,
        moving_rate: float = 0.9,
        dtype: object = "float32",
        reduce_type: str | None = None,
    ) -> None:
        super().__init__()
        self._check_ranks(reduce_type)
        self._keep(name or "outscale", moving_rate, dtype, 0.0, 0.0)

    def forward(self, input: TensorLike) -> Any:
        """The input as it is."""
        self._observe(input)
        return input


class FakeQuantAbsMax(_ScaledLayer):
    """Rounds by the largest magnitude of each call, which is kept with ``quant_on_weight``."""

    def __init__(
        self,
        name: str | None = None,
        quant_bits: int = 8,
        dtype: object = "float32",
        quant_on_weight: bool = False,
        reduce_type: str | None = None,
    ) -> None:
        super().__init__()
        self._check_ranks(reduce_type)
        self._quant_bits = quant_bits
        self._scale = self._create_state(name or "quant_dequant", "scale", 0.001, dtype) if quant_on_weight else None

    def _largest(self, input: Any) -> Any:
        return input.detach().abs().max().reshape([1])

    def forward(self, input: TensorLike) -> Any:
        """The input, rounded."""
        with no_grad():
            scale = self._largest(input)
            if self._scale is not None:
                write(self._scale, scale.flatten().astype(self._scale.dtype))
        return StraightThrough.apply(input, scale, 2 ** (self._quant_bits - 1) - 1)


class FakeQuantChannelWiseAbsMax(FakeQuantAbsMax):
    """Rounds each of the ``channel_num`` channels along ``quant_axis`` by its own largest magnitude; for weights."""

    def __init__(
        self,
        name: str | None = None,
        channel_num: int | None = None,
        quant_bits: int = 8,
        quant_axis: int = 0,
        dtype: object = "float32",
        quant_on_weight: bool = False,
        reduce_type: str | None = None,
    ) -> None:
        super().__init__(name, quant_bits, dtype, False, reduce_type)
        if not quant_on_weight or channel_num is None:
            raise ValueError(
                "FakeQuantChannelWiseAbsMax() is for weights: it takes quant_on_weight=True and channel_num"
            )
        self._quant_axis = quant_axis
        self._scale = self._create_state(name or "quant_dequant", "scale", 0.0, dtype, channel_num)

    def _largest(self, input: Any) -> Any:
        others = [axis for axis in range(input.ndim) if axis != self._quant_axis % input.ndim]
        return input.detach().abs().max(others, keepdim=True)


def make_fake_quant(kind: str, owner: str, bits: int, moving_rate: float, channels: tuple[int, int] | None) -> Layer:
    """The layer of this kind: "abs_max", "moving_average_abs_max" or "channel_wise_abs_max".

    owner: where the name of its scale begins; channels: of a weight, their count and axis. Raises ValueError for
    another kind, NotImplementedError for those with learned steps.
    """
    if kind == "abs_max":
        return FakeQuantAbsMax(owner, bits, quant_on_weight=channels is not None)
    if kind == "moving_average_abs_max":
        return FakeQuantMovingAverageAbsMax(owner, moving_rate, bits)
    if kind == "channel_wise_abs_max" and channels is not None:
        return FakeQuantChannelWiseAbsMax(owner, channels[0], bits, channels[1], quant_on_weight=True)
    if kind in ("lsq_weight", "channel_wise_lsq_weight", "lsq_act"):
        raise NotImplementedError(f"quantisation with learned steps ({kind!r}) is not implemented")
    raise ValueError(
        f"quantisation of {owner}: {kind!r} is no way to quantise {'a weight' if channels else 'an input'}"
    )

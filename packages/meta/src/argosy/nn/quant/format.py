"""Quantisation with fixed scales, as it is exported: ``LinearQuanter``, ``LinearDequanter`` and layers with them."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from argosy.argument_checks import TensorLike
from argosy.framework.creation import to_tensor
from argosy.framework.param_attr import ParamAttr
from argosy.nn.initializer import Assign
from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad
from argosy_tensorcore import naming

__all__ = ["ConvertibleQuantedLayer", "LinearDequanter", "LinearQuanter", "LinearQuanterDequanter"]

_FLOAT8 = {(4, 3): (448, "float8_e4m3fn"), (5, 2): (57344, "float8_e5m2")}


class _LinearQuantization(Layer):
    """Scales and zero points, kept as parameters that are not trained.

    scales: what the largest integer stands for: one number, of each channel of ``quant_axis``, or 2-D of groups of
    ``group_size`` inputs. bit_length: of an integer, or (exponent, mantissa) of a float8.
    """

    def __init__(
        self, scales: Any, zero_point: Any = None, quant_axis: Any = None, bit_length: Any = 8, group_size: int = 128
    ) -> None:
        super().__init__()
        self._scales = self._create_state("scale", to_tensor(scales, "float32").detach())
        points = self._scales * 0 if zero_point is None else to_tensor(zero_point, "float32")
        self._zero_point = self._create_state("zero_point", points.detach())
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._group_size = group_size
        self._float8: str | None = None
        if isinstance(bit_length, tuple):
            if bit_length not in _FLOAT8:
                raise NotImplementedError(f"quantisation to floats of {bit_length} bits: (4, 3) and (5, 2) are known")
            self._qmax, self._float8 = _FLOAT8[bit_length]
            self._qmin = -self._qmax
        else:
            self._qmax = 2 ** (bit_length - 1) - 1
            self._qmin = -self._qmax - 1

    def _create_state(self, what: str, value: Any) -> Any:
        attr = ParamAttr(
            name=naming.generate(f"quant_dequant.{what}"), initializer=Assign(value.numpy()), trainable=False
        )
        return self.create_parameter(value.shape, attr, "float32")

    def is_symmetric(self, axis: int = -1) -> bool:
        """Whether numbers are integers of at most 8 bits without zero points, with one scale or one for each channel of
        ``axis``; with -1 one scale."""
        one = self._scales.size == 1
        by_channel = self._scales.ndim == 1 and axis >= 0 and self._quant_axis == axis
        return self._float8 is None and self._qmax <= 127 and (one or by_channel) and not self._zero_point.any()

    def step(self) -> Any:
        """What an integer of 1 stands for, [] or [channels]."""
        return (self._scales.reshape([]) if self._scales.size == 1 else self._scales) / self._qmax

    def _broadcast(self, x: Any, kept: Any) -> Any:
        """``kept`` in a shape that goes with ``x``."""
        if kept.ndim > 1:
            return kept.repeat_interleave(self._group_size, 0)
        if self._quant_axis >= 0 and kept.size > 1:
            return kept.reshape([-1 if axis == self._quant_axis else 1 for axis in range(x.ndim)])
        return kept.reshape([])

    @classmethod
    def from_quanter(cls, quanter: Any) -> Any:
        """With what a quanter or observer has found."""
        return cls(quanter.scales(), quanter.zero_points(), quanter.quant_axis(), quanter.bit_length())


class LinearQuanter(_LinearQuantization):
    """``round(x / scale * largest) + zero_point`` within the integers' range, halves to even; in the dtype of ``x``."""

    def forward(self, input: TensorLike) -> Any:
        """Integers, as floats."""
        steps = input.astype("float32") * self._qmax / self._broadcast(input, self._scales)
        if self._float8 is not None:
            return steps.clip(self._qmin, self._qmax).astype(self._float8).astype(input.dtype)
        rounded = steps.round() + self._broadcast(input, self._zero_point)
        return rounded.clip(self._qmin, self._qmax).astype(input.dtype)


class LinearDequanter(_LinearQuantization):
    """``(x - zero_point) * scale / largest``, in the dtype of ``x``, float32 of integers."""

    def forward(self, input: TensorLike) -> Any:
        """What the integers stand for."""
        steps = input.astype("float32")
        if self._float8 is None:
            steps = steps - self._broadcast(input, self._zero_point)
        made = steps * self._broadcast(input, self._scales) / self._qmax
        return made.astype(input.dtype) if input.is_floating_point() else made


class LinearQuanterDequanter(Layer):
    """A quanter, then a dequanter; either may be None."""

    def __init__(self, quanter: Layer | None, dequanter: Layer | None) -> None:
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    def forward(self, input: TensorLike) -> Any:
        """The input, rounded to what integers stand for."""
        for layer in (self._quanter, self._dequanter):
            input = input if layer is None else layer(input)
        return input

    @staticmethod
    def from_quanter(quanter: Any) -> LinearQuanterDequanter:
        """Both with what a quanter or observer has found."""
        return LinearQuanterDequanter(LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter))


class ConvertibleQuantedLayer(Layer, metaclass=ABCMeta):
    """A layer with quanters of weights and inputs, which :meth:`convert` makes constants of."""

    def __init__(self) -> None:
        super().__init__()
        self.converted = False

    @abstractmethod
    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """Pairs of names: of a weight, and of its quanter."""

    @abstractmethod
    def activation_quanters(self) -> list[str]:
        """Names of the quanters of inputs."""

    def knows_weights(self) -> bool:
        """Whether the quanters of weights have scales."""
        quanters = [getattr(self, name) for _, name in self.weights_to_quanters()]
        return all(quanter is not None and quanter.scales() is not None for quanter in quanters)

    def convert(self, remain_weight: bool = False) -> None:
        """Replace quanters by fixed ones; without ``remain_weight`` weights are integers from now on, int8 where these
        have at most 8 bits.

        Raises RuntimeError when called twice.
        """
        if self.converted:
            raise RuntimeError(f"{type(self).__name__}: the model should be converted only once")
        for weight_name, quanter_name in self.weights_to_quanters():
            fixed = self._fix(quanter_name)
            if fixed is not None and not remain_weight:
                with no_grad():
                    setattr(self, weight_name, self._store(getattr(self, weight_name), fixed._quanter))
                fixed._quanter = None
        for quanter_name in self.activation_quanters():
            self._fix(quanter_name)
        self.converted = True

    def _store(self, weight: Any, quanter: LinearQuanter) -> Any:
        """A parameter of what the quanter makes of a weight."""
        made = quanter(weight)
        if quanter._float8 is None and quanter._qmax <= 127:
            made = made.astype("int8")
        attr = ParamAttr(name=weight.name, initializer=Assign(made.numpy()), trainable=False)
        return self.create_parameter(made.shape, attr, made.dtype)

    def _fix(self, name: str) -> Any:
        quanter = getattr(self, name)
        if quanter is not None:
            setattr(self, name, LinearQuanterDequanter.from_quanter(quanter))
        return getattr(self, name)

"""Initialisers whose width follows from the number of connections of a unit."""

from __future__ import annotations

import math

from argosy.nn.initializer.initializer import Initializer
from argosy.nn.initializer.random import draw_normal, draw_uniform
from argosy_tensorcore.tensor import Tensor

__all__ = ["KaimingNormal", "KaimingUniform", "XavierNormal", "XavierUniform", "calculate_gain", "fans"]

_GAINS = {
    "sigmoid": 1.0, "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv1d_transpose": 1.0,
    "conv2d_transpose": 1.0, "conv3d_transpose": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def fans(shape: list[int]) -> tuple[int, int]:
    """(inputs, outputs) of a unit: of [in, out] as they stand, of [out, in, *kernel] times the kernel's size."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity wants weights widened. Raises ValueError for unknown names."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain: {nonlinearity!r} is not one of {sorted([*_GAINS, 'leaky_relu'])}")
    return _GAINS[nonlinearity]


class _Xavier(Initializer):
    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, gain: float = 1.0, name: str | None = None
    ) -> None:
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def _std(self, param: Tensor) -> float:
        fan_in, fan_out = fans(list(param.shape))
        total = (self.fan_in or fan_in) + (self.fan_out or fan_out)
        return self.gain * math.sqrt(2.0 / max(total, 1))


class XavierUniform(_Xavier):
    """Uniform in ±gain √(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        bound = math.sqrt(3.0) * self._std(var)
        draw_uniform(var, -bound, bound)


class XavierNormal(_Xavier):
    """Normal with standard deviation gain √(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        draw_normal(var, 0.0, self._std(var))


class _KaimingBase(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: str = "fan_in",
    ) -> None:
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"{type(self).__name__}: mode must be 'fan_in' or 'fan_out', not {mode!r}")
        self.fan_in, self.negative_slope, self.nonlinearity, self.mode = fan_in, negative_slope, nonlinearity, mode

    def _std(self, param: Tensor) -> float:
        fan_in, fan_out = fans(list(param.shape))
        fan = fan_out if self.mode == "fan_out" else (self.fan_in or fan_in)
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(max(fan, 1))


class KaimingUniform(_KaimingBase):
    """Uniform in ±gain √(3 / fan) (He et al., 2015)."""

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        bound = math.sqrt(3.0) * self._std(var)
        draw_uniform(var, -bound, bound)


class KaimingNormal(_KaimingBase):
    """Normal with standard deviation gain / √fan (He et al., 2015)."""

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        draw_normal(var, 0.0, self._std(var))

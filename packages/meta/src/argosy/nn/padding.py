"""Layers that pad: with a constant, zeros, the nearest edge, or the mirrored or repeated input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from argosy.nn import functional as F
from argosy.nn.integers import Integral
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "CircularPad1D", "CircularPad2D", "CircularPad3D", "ConstantPad1D", "ConstantPad2D", "ConstantPad3D",
    "Pad1D", "Pad2D", "Pad3D", "ReflectionPad1D", "ReflectionPad2D", "ReflectionPad3D", "ReplicationPad1D",
    "ReplicationPad2D", "ReplicationPad3D", "ZeroPad1D", "ZeroPad2D", "ZeroPad3D",
]  # fmt: skip

Padding = int | Sequence[int]


class _Pad(Layer):
    """Pads the spatial axes; padding: (before, after) of the last axis first, or one number for all sides."""

    spatial: ClassVar[int]

    def __init__(self, padding: Padding, mode: str, value: float, data_format: str) -> None:
        super().__init__()
        self._pad = [padding] * (2 * self.spatial) if isinstance(padding, Integral) else list(padding)
        if len(self._pad) != 2 * self.spatial:
            raise ValueError(f"{type(self).__name__}: padding is one number or {2 * self.spatial}, got {padding}")
        self._mode, self._value, self._data_format = mode, value, data_format

    def forward(self, x: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)

    def extra_repr(self) -> str:
        """Padding, mode and layout."""
        return f"padding={self._pad}, mode={self._mode}, value={self._value}, data_format={self._data_format}"


class Pad1D(_Pad):
    """Padding of [N, C, L] in any mode of ``functional.pad``."""

    spatial = 1

    def __init__(
        self,
        padding: Padding,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format)


class Pad2D(_Pad):
    """Padding of [N, C, H, W] in any mode of ``functional.pad``."""

    spatial = 2

    def __init__(
        self,
        padding: Padding,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format)


class Pad3D(_Pad):
    """Padding of [N, C, D, H, W] in any mode of ``functional.pad``."""

    spatial = 3

    def __init__(
        self,
        padding: Padding,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(padding, mode, value, data_format)


class ConstantPad1D(_Pad):
    """Padding of [N, C, L] with one value."""

    spatial = 1

    def __init__(self, padding: Padding, value: float, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", value, data_format)


class ConstantPad2D(_Pad):
    """Padding of [N, C, H, W] with one value."""

    spatial = 2

    def __init__(self, padding: Padding, value: float, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", value, data_format)


class ConstantPad3D(_Pad):
    """Padding of [N, C, D, H, W] with one value."""

    spatial = 3

    def __init__(self, padding: Padding, value: float, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", value, data_format)


class ZeroPad1D(_Pad):
    """Padding of [N, C, L] with zeros."""

    spatial = 1

    def __init__(self, padding: Padding, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format)


class ZeroPad2D(_Pad):
    """Padding of [N, C, H, W] with zeros."""

    spatial = 2

    def __init__(self, padding: Padding, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format)


class ZeroPad3D(_Pad):
    """Padding of [N, C, D, H, W] with zeros."""

    spatial = 3

    def __init__(self, padding: Padding, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format)


class ReplicationPad1D(_Pad):
    """Padding of [N, C, L] with the nearest edge."""

    spatial = 1

    def __init__(self, padding: Padding, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format)


class ReplicationPad2D(_Pad):
    """Padding of [N, C, H, W] with the nearest edge."""

    spatial = 2

    def __init__(self, padding: Padding, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format)


class ReplicationPad3D(_Pad):
    """Padding of [N, C, D, H, W] with the nearest edge."""

    spatial = 3

    def __init__(self, padding: Padding, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "replicate", 0.0, data_format)


class ReflectionPad1D(_Pad):
    """Padding of [N, C, L] with the input mirrored at its edge."""

    spatial = 1

    def __init__(self, padding: Padding, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format)


class ReflectionPad2D(_Pad):
    """Padding of [N, C, H, W] with the input mirrored at its edge."""

    spatial = 2

    def __init__(self, padding: Padding, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format)


class ReflectionPad3D(_Pad):
    """Padding of [N, C, D, H, W] with the input mirrored at its edge."""

    spatial = 3

    def __init__(self, padding: Padding, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "reflect", 0.0, data_format)


class CircularPad1D(_Pad):
    """Padding of [N, C, L] as if the input repeated."""

    spatial = 1

    def __init__(self, padding: Padding, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format)


class CircularPad2D(_Pad):
    """Padding of [N, C, H, W] as if the input repeated."""

    spatial = 2

    def __init__(self, padding: Padding, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format)


class CircularPad3D(_Pad):
    """Padding of [N, C, D, H, W] as if the input repeated."""

    spatial = 3

    def __init__(self, padding: Padding, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "circular", 0.0, data_format)

"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.nn import functional as F
from argosy.nn.conv_settings import check_settings
from argosy.nn.initializer import Normal
from argosy.nn.integers import Integral
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]


class _ConvNd(Layer):
    """What convolutions and transposed convolutions are, for ``isinstance``; Paddle's name."""

    spatial: ClassVar[int]
    function: ClassVar[str]
    weight: Any
    bias: Any
    output_padding: Any = 0
    _padding_mode: str = "zeros"

    def _take_sizes(self, channels: tuple[int, int], kernel_size: int | Sequence[int], groups: int) -> None:
        """Keep channels, kernel and groups. Raises ValueError where they do not fit."""
        in_channels, out_channels = self._in_channels, self._out_channels = channels
        self._groups = groups
        name = type(self).__name__
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: {in_channels} and {out_channels} channels do not split into {groups} groups")
        self._kernel_size = _of_axes(kernel_size, self.spatial)
        if len(self._kernel_size) != self.spatial:
            raise ValueError(f"{name}: kernel_size needs {self.spatial} numbers, got {self._kernel_size}")
        self._shown = f"{in_channels}, {out_channels}, kernel_size={self._kernel_size}"

    def _make_parameters(self, shape: list[int], attrs: Sequence[Any], start: Normal | None = None) -> None:
        self._param_attr, self._bias_attr = attrs
        self.weight = self.create_parameter(shape, attrs[0], default_initializer=start)
        self.bias = self.create_parameter([self._out_channels], attrs[1], is_bias=True)


class _Conv(_ConvNd):
    """Cross-correlation over ``spatial`` axes; weight [out_channels, in_channels / groups, *kernel].

    The weight starts normal with standard deviation √(2 / (in_channels * kernel elements)), the bias at 0.
    """

    def _make(
        self, channels: tuple[int, int], kernel_size: int | Sequence[int], groups: int, attrs: Sequence[Any]
    ) -> None:
        self._take_sizes(channels, kernel_size, groups)
        (in_channels, out_channels), kernel = channels, self._kernel_size
        sizes = {"in_channels": [in_channels], "out_channels": [out_channels], "kernel_size": kernel}
        for argument, given in sizes.items():
            if any(n < 1 for n in given):
                raise ValueError(f"{type(self).__name__}(): argument {argument!r} should be positive, got {given}")
        std = math.sqrt(2.0 / (in_channels * math.prod(kernel)))
        self._make_parameters([out_channels, in_channels // groups, *kernel], attrs, Normal(0.0, std))

    def _set(self, stride: Any, padding: Any, dilation: Any, groups: int, data_format: str, mode: str) -> None:
        kind = type(self).__name__
        check_settings(kind, self.spatial, data_format, padding, stride=stride, dilation=dilation)
        if mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{kind}: padding_mode is zeros, reflect, replicate or circular, got {mode!r}")
        self._padding_mode, self._padding, self._data_format = mode, padding, data_format
        self._stride, self._dilation = _of_axes(stride, self.spatial), _of_axes(dilation, self.spatial)
        self._edges = self._padded_by_hand(padding, mode, self._kernel_size, dilation)

    def _padded_by_hand(
        self, padding: int | str | Sequence[Any], mode: str, kernel: list[int], dilation: Any
    ) -> list[int] | None:
        """What to pad with before the convolution (last axis first) where it cannot pad with zeros itself."""
        if mode == "zeros":
            return None
        steps = [dilation] * self.spatial if isinstance(dilation, Integral) else list(dilation)
        if isinstance(padding, str):
            reach = [d * (k - 1) * (padding.upper() == "SAME") for d, k in zip(steps, kernel, strict=True)]
            pairs = [(total // 2, total - total // 2) for total in reach]
        else:
            given = [padding] * self.spatial if isinstance(padding, Integral) else list(padding)
            twice = len(given) == 2 * self.spatial
            pairs = list(zip(given[::2], given[1::2], strict=True)) if twice else [(p, p) for p in given]
        if len(pairs) != self.spatial:
            raise ValueError(f"{type(self).__name__}: padding {padding!r} does not fit {self.spatial} axes")
        return [edge for pair in reversed(pairs) for edge in pair]

    def forward(self, x: Tensor) -> Tensor:
        """The convolved input."""
        if self._edges is not None:
            x = F.pad(x, self._edges, mode=self._padding_mode, data_format=self._data_format)
        settings = (self._stride, self._updated_padding, self._dilation, self._groups, self._data_format)
        return getattr(F, self.function)(x, self.weight, self.bias, *settings)  # type: ignore[no-any-return]

    @property
    def _updated_padding(self) -> Any:
        """What the convolution itself pads with zeros."""
        return self._padding if self._edges is None else 0

    def extra_repr(self) -> str:
        """Channels, kernel, layout, and what is not as by default."""
        names = ("stride", "padding", "dilation", "groups", "padding_mode")
        changed = {name: getattr(self, f"_{name}") for name in names}
        return _shown_settings(self._shown, self.spatial, self._data_format, changed)


def _of_axes(given: int | Sequence[int], count: int) -> list[int]:
    """One number for each axis."""
    return [given] * count if isinstance(given, Integral) else list(given)


def _shown_settings(sizes: str, spatial: int, data_format: str, settings: dict[str, Any]) -> str:
    """The sizes, the settings that differ from their defaults in Paddle's order, and the layout."""
    plain = {"stride": 1, "padding": 0, "padding_mode": "zeros", "output_padding": 0, "dilation": 1, "groups": 1}
    parts = [sizes]
    for name, default in plain.items():
        value = settings.get(name, default)
        if name in ("stride", "dilation"):
            value, default = _of_axes(value, spatial), [default] * spatial
        if value != default:
            parts.append(f"{name}={value}")
    return ", ".join([*parts, f"data_format={data_format}"])


class Conv1D(_Conv):
    """Convolution of [N, C, L] (or "NLC")."""

    spatial, function = 1, "conv1d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr if bias else False))
        self._set(stride, padding, dilation, groups, data_format, padding_mode)


class Conv2D(_Conv):
    """Convolution of [N, C, H, W] (or "NHWC")."""

    spatial, function = 2, "conv2d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr if bias else False))
        self._set(stride, padding, dilation, groups, data_format, padding_mode)


class Conv3D(_Conv):
    """Convolution of [N, C, D, H, W] (or "NDHWC")."""

    spatial, function = 3, "conv3d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr if bias else False))
        self._set(stride, padding, dilation, groups, data_format, padding_mode)


class _ConvTranspose(_ConvNd):
    """The transpose of a convolution over ``spatial`` axes; weight [in_channels, out_channels / groups, *kernel].

    The weight starts by Xavier's rule, not as a convolution's.
    """

    def _make(
        self, channels: tuple[int, int], kernel_size: int | Sequence[int], groups: int, attrs: Sequence[Any]
    ) -> None:
        self._take_sizes(channels, kernel_size, groups)
        self._make_parameters([channels[0], channels[1] // groups, *self._kernel_size], attrs)

    def _set(self, groups: int, data_format: str, padding: Any, **steps: Any) -> None:
        check_settings(type(self).__name__, self.spatial, data_format, padding, **steps)
        self._padding, self._data_format, self.output_padding = padding, data_format, steps["output_padding"]
        self._stride = _of_axes(steps["stride"], self.spatial)
        self._dilation = _of_axes(steps["dilation"], self.spatial)

    def _settings(self) -> dict[str, Any]:
        names = ("stride", "padding", "dilation", "groups", "data_format")
        return {"output_padding": self.output_padding, **{name: getattr(self, f"_{name}") for name in names}}

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """The larger input; ``output_size`` says how large where a stride leaves that open."""
        settings = self._settings()
        if output_size is not None:
            settings["output_padding"] = 0
        return getattr(F, self.function)(  # type: ignore[no-any-return]
            x, self.weight, self.bias, output_size=output_size, **settings
        )

    def extra_repr(self) -> str:
        """Channels, kernel, layout, and what is not as by default."""
        return _shown_settings(self._shown, self.spatial, self._data_format, self._settings())


class Conv1DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, L]."""

    spatial, function = 1, "conv1d_transpose"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__()
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr))
        steps = {"stride": stride, "output_padding": output_padding, "dilation": dilation}
        self._set(groups, data_format, padding, **steps)


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, H, W]."""

    spatial, function = 2, "conv2d_transpose"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr))
        steps = {"stride": stride, "output_padding": output_padding, "dilation": dilation}
        self._set(groups, data_format, padding, **steps)


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution of [N, C, D, H, W]."""

    spatial, function = 3, "conv3d_transpose"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[Any] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__()
        self._make((in_channels, out_channels), kernel_size, groups, (weight_attr, bias_attr))
        steps = {"stride": stride, "output_padding": output_padding, "dilation": dilation}
        self._set(groups, data_format, padding, **steps)

"""What the model families share: convolution with normalisation and activation, rounded widths, missing weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.nn.activation import ReLU
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.layer import Layer

__all__ = ["ConvNormActivation", "make_divisible", "refuse_pretrained"]


class ConvNormActivation(Sequential):
    """Convolution, normalisation and activation of ``[N, C, H, W]``; either of the latter can be None.

    padding: None keeps the size at stride 1. bias: None adds one where there is no normalisation.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Callable[..., Layer] | None = BatchNorm2D,
        activation_layer: Callable[..., Layer] | None = ReLU,
        dilation: Any = 1,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        biased = norm_layer is None if bias is None else bias
        layers: list[Layer] = [
            Conv2D(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias_attr=None if biased else False,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer())
        super().__init__(*layers)


def make_divisible(width: float, by: int = 8) -> int:
    """The multiple of ``by`` next to ``width``, at least ``by`` and at most a tenth below (Howard et al., 2019)."""
    rounded = max(by, int(width + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * width else rounded


def refuse_pretrained(name: str, pretrained: bool) -> None:
    """Raise NotImplementedError where trained weights are wanted: argosy carries none and downloads nothing."""
    if pretrained:
        raise NotImplementedError(
            f"{name}(pretrained=True): argosy has no trained weights to offer; give the file of some to "
            f"{name}().set_state_dict(argosy.load(path))"
        )

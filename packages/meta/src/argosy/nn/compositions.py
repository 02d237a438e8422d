"""Functions of ``nn.functional`` that are a few operators each: activations and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.nn.regularization import dropout, overwritten
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax", "maxout",
    "rrelu", "silu",
]  # fmt: skip

# Where an infinitely negative input of SELU saturates: -scale * alpha.
_SATURATION = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


@parameter_aliases(input="x")
@validate_call
def silu(x: Tensor, inplace: bool = False, name: str | None = None) -> Tensor:
    """``x * sigmoid(x)`` (Elfwing et al., 2018), written over ``x`` if ``inplace``."""
    result: Tensor = get_operator("silu")(x)
    return overwritten(x, result) if inplace else result


@validate_call
def maxout(x: Tensor, groups: int, axis: int = 1, name: str | None = None) -> Tensor:
    """The maximum of ``groups`` neighbouring channels: [N, C, H, W] gives [N, C / groups, H, W]."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"maxout: argument 'axis' should be from {-x.ndim} to {x.ndim - 1}, got {axis}")
    place = axis % x.ndim
    channels = x.shape[place]
    if groups < 1 or channels % groups:
        raise ValueError(f"maxout: {channels} channels do not split into groups of {groups}")
    shape = [*x.shape[:place], channels // groups, groups, *x.shape[place + 1 :]]
    return x.reshape(shape).max(axis=place + 1)


@validate_call
def rrelu(
    x: Tensor, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: bool = True, name: str | None = None
) -> Tensor:
    """``x`` where positive, else ``slope * x``: slopes are uniform in [lower, upper] while training, else their
    mean.
    """
    if not 0.0 <= lower <= upper <= 1.0:
        raise ValueError(f"rrelu: needs 0 <= lower <= upper <= 1, got {lower} and {upper}")
    slope: Any = (lower + upper) / 2.0
    if training:
        slope = get_operator("rand_like")(x) * (upper - lower) + lower
    return get_operator("where")(x >= 0, x, x * slope)  # type: ignore[no-any-return]


@validate_call
def gumbel_softmax(
    x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Tensor:
    """A sample of the Gumbel-softmax distribution with logits ``x`` (Jang et al., 2017).

    With ``hard`` a one-hot vector whose gradient is that of the soft sample.
    """
    if not temperature > 0:
        raise ValueError(f"gumbel_softmax: argument 'temperature' should be positive, got {temperature}")
    uniform = get_operator("rand_like")(x).detach().clip(1e-20, 1.0 - 2.0**-24)
    soft = get_operator("softmax")((x - (-(uniform.log())).log()) / temperature, axis=axis)
    if not hard:
        return soft  # type: ignore[no-any-return]
    classes = x.shape[axis % x.ndim]
    picked = get_operator("one_hot")(soft.argmax(axis=axis), classes).astype(x.dtype)
    picked = picked.moveaxis(-1, axis % x.ndim)
    return picked - soft.detach() + soft  # type: ignore[no-any-return]


@validate_call
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of [N, C, L] or [C, L]."""
    result = _drop_channels("dropout1d", input, p, training, 3, "NCL")
    return overwritten(input, result) if inplace and result is not input else result


@validate_call
def dropout2d(
    x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """Drop whole channels of [N, C, H, W] (or "NHWC")."""
    return _drop_channels("dropout2d", x, p, training, 4, data_format)


@validate_call
def dropout3d(
    x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None
) -> Tensor:
    """Drop whole channels of [N, C, D, H, W] (or "NDHWC")."""
    return _drop_channels("dropout3d", x, p, training, 5, data_format)


def _drop_channels(function: str, x: Tensor, p: float, training: bool, rank: int, data_format: str) -> Tensor:
    if x.ndim == rank - 1 and function == "dropout1d":
        return dropout(x, p=p, axis=[0], training=training)
    if x.ndim != rank:
        raise ValueError(f"{function}: the input has {rank} axes ({data_format}), got shape {list(x.shape)}")
    if sorted(data_format) != sorted({3: "NCL", 4: "NCHW", 5: "NCDHW"}[rank]):
        raise ValueError(f"{function}: data_format {data_format!r} does not fit an input of {rank} axes")
    return dropout(x, p=p, axis=[0, data_format.index("C")], training=training)


@validate_call
def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """Dropout that keeps mean and variance of SELU's output (Klambauer et al., 2017)."""
    return _saturate("alpha_dropout", x, p, training, list(x.shape))


@validate_call
def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None) -> Tensor:
    """:func:`alpha_dropout` of whole channels: the first two axes choose."""
    return _saturate("feature_alpha_dropout", x, p, training, [*x.shape[:2], *[1] * (x.ndim - 2)])


def _saturate(function: str, x: Any, p: float, training: bool, noise: Sequence[int]) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"{function}: p is a probability, got {p}")
    if not training or p == 0:
        return x  # type: ignore[no-any-return]
    if p == 1:
        return x * 0.0  # type: ignore[no-any-return]
    scale = 1.0 / math.sqrt((1 - p) * (1 + p * _SATURATION**2))
    keep = (get_operator("rand")(list(noise)) >= p).astype(x.dtype)
    kept = x * keep + (1.0 - keep) * _SATURATION
    return kept * scale - scale * p * _SATURATION  # type: ignore[no-any-return]

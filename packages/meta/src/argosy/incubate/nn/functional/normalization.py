"""Normalisation over the last axes, after a bias and a residual connection."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["fast_ln", "fast_rms_norm", "fused_layer_norm", "fused_rms_norm", "fused_rms_norm_ext"]


def _refuse_quantised(name: str, quant_scale: float) -> None:
    if quant_scale > 0:
        raise NotImplementedError(f"{name}(): results of int8 (quant_scale={quant_scale}) are not implemented")


def _first_axis(name: str, x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{name}(): argument 'begin_norm_axis' should be from {-x.ndim} to {x.ndim - 1}, got {axis}")
    return axis % x.ndim


def _join(x: Tensor, bias: Tensor | None, residual: Tensor | None, alpha: float = 1.0) -> Any:
    """``x + bias + alpha * residual``; a bias counts only where there is a residual, as in Paddle's kernels."""
    if residual is None:
        return x
    out = x if bias is None else x + bias
    return out + (residual if alpha == 1.0 else residual * alpha)


def _as_rows(x: Tensor, axis: int) -> Any:
    """``x`` in float32 or wider as rows [rows, columns], the columns those of the axes from ``axis`` on."""
    wide = x if x.dtype.itemsize >= 4 else x.cast("float32")
    return op("flatten")(wide, axis, -1).flatten(0, axis - 1) if axis else wide.reshape([1, -1])


def _scale(flat: Any, weight: Tensor | None, bias: Tensor | None, like: Tensor) -> Any:
    for each, combine in ((weight, op("multiply")), (bias, op("add"))):
        if each is not None:
            flat = combine(flat, each.reshape([-1]).cast(flat.dtype.name))
    return flat.reshape(like.shape).cast(like.dtype.name)


@validate_call
def fused_rms_norm(
    x: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor | None,
    epsilon: float,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: float = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor]:
    """``y = x + bias + residual`` divided by its root mean square over the axes from ``begin_norm_axis`` on, times
    ``norm_weight``, plus ``norm_bias`` (Zhang and Sennrich, 2019); and ``y``.

    Without a residual ``y`` is ``x``, whatever the bias, and the second result is empty, as in Paddle.
    Raises ``NotImplementedError`` for results of int8 (``quant_scale`` above 0).
    """
    _refuse_quantised("fused_rms_norm", quant_scale)
    axis = _first_axis("fused_rms_norm", x, begin_norm_axis)
    y = _join(x, bias, residual)
    rows = _as_rows(y, axis)
    normal = rows * op("rsqrt")((rows * rows).mean(-1, keepdim=True) + epsilon)
    return _scale(normal, norm_weight, norm_bias, x), _residual_or_empty(y, residual)


def _residual_or_empty(y: Tensor, residual: Tensor | None) -> Tensor:
    return op("zeros")([0], y.dtype.name) if residual is None else y


@validate_call
def fused_layer_norm(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    epsilon: float,
    residual_alpha: float = 1.0,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: float = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``y = x + bias + residual_alpha * residual`` normalised to mean 0 and variance 1 over the axes from
    ``begin_norm_axis`` on, times ``norm_weight``, plus ``norm_bias``; ``y``; and each row's mean and inverse standard
    deviation (Ba et al., 2016).

    Without a residual ``y`` is ``x``, whatever the bias, and the second result is empty, as in Paddle. With neither
    weight nor bias of the normalisation the first result is ``y`` itself. Raises ``NotImplementedError`` for results
    of int8 (``quant_scale`` above 0).
    """
    _refuse_quantised("fused_layer_norm", quant_scale)
    axis = _first_axis("fused_layer_norm", x, begin_norm_axis)
    y = _join(x, bias, residual, residual_alpha)
    rows = _as_rows(y, axis)
    mean = rows.mean(-1, keepdim=True)
    centred = rows - mean
    inverse = op("rsqrt")((centred * centred).mean(-1, keepdim=True) + epsilon)
    bare = norm_weight is None and norm_bias is None
    out = y if bare else _scale(centred * inverse, norm_weight, norm_bias, x)
    return out, _residual_or_empty(y, residual), mean.flatten(), inverse.flatten()


@validate_call
def fused_rms_norm_ext(
    x: Tensor, scale: Tensor, epsilon: float = 1e-5, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """``x`` over its root mean square along the last axis, times ``scale``; and the inverse of that root, one for each
    row, in the shape of ``x`` without its last axis."""
    wide = x if x.dtype.itemsize >= 4 else x.cast("float32")
    inverse = op("rsqrt")((wide * wide).mean(-1, keepdim=True) + epsilon)
    return (wide * inverse * scale.cast(wide.dtype.name)).cast(x.dtype.name), inverse.squeeze(-1)


def fast_rms_norm(x: Tensor, scale: Tensor, epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    """:func:`fused_rms_norm_ext` under its older name."""
    return fused_rms_norm_ext(x, scale, epsilon)


@validate_call
def fast_ln(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation along the last axis, with each row's mean and inverse standard deviation."""
    out, _, mean, inverse = fused_layer_norm(x, scale, bias, epsilon, begin_norm_axis=-1)
    return out, mean.reshape(x.shape[:-1]), inverse.reshape(x.shape[:-1])

"""Products with a bias and an activation."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["activate", "fused_bias_act", "fused_linear", "fused_linear_activation", "fused_matmul_bias"]

_ACTIVATIONS = ("gelu", "relu", "silu", "swish", "sigmoid", "tanh", "leaky_relu")


@validate_call
def fused_matmul_bias(
    x: Tensor,
    y: Tensor,
    bias: Tensor | None = None,
    transpose_x: bool = False,
    transpose_y: bool = False,
    name: str | None = None,
) -> Tensor:
    """``x @ y + bias``, the matrices transposed if told."""
    out = op("matmul")(x, y, transpose_x, transpose_y)
    return out if bias is None else op("add")(out, bias)


@validate_call
def fused_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose_weight: bool = False, name: str | None = None
) -> Tensor:
    """``x @ weight + bias``; weight [in, out], or [out, in] with ``transpose_weight``."""
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


@validate_call
def fused_linear_activation(
    x: Tensor, y: Tensor, bias: Tensor, trans_x: bool = False, trans_y: bool = False, activation: str | None = None
) -> Tensor:
    """The activation ("gelu", "relu" or none) of ``x @ y + bias``."""
    out = fused_matmul_bias(x, y, bias, trans_x, trans_y)
    if activation in (None, "none"):
        return out
    if activation not in ("gelu", "relu"):
        raise ValueError(
            f"fused_linear_activation(): argument 'activation' should be 'gelu' or 'relu', got {activation!r}"
        )
    return op(activation)(out)


def activate(name: str, x: Any, activation: str) -> Any:
    """The activation called so of ``x``; errors name the function ``name``."""
    if activation not in _ACTIVATIONS:
        raise ValueError(f"{name}(): the activation should be one of {', '.join(_ACTIVATIONS)}, got {activation!r}")
    return op(activation)(x)


@validate_call
def fused_bias_act(
    x: Tensor,
    bias: Tensor | None = None,
    dequant_scales: Tensor | None = None,
    shift: Tensor | None = None,
    smooth: Tensor | None = None,
    act_method: str = "gelu",
    compute_dtype: str = "default",
    quant_scale: float = -1,
    quant_round_type: int = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> Tensor:
    """An activation of ``x + bias``: by its name, or "swiglu" or "geglu", the silu or gelu of the first half of the
    last axis times the second. Raises ``NotImplementedError`` for integers on the way in or out."""
    given = {"dequant_scales": dequant_scales, "shift": shift, "smooth": smooth}
    asked = [key for key, value in given.items() if value is not None] + ["quant_scale"] * (quant_scale > 0)
    if asked:
        raise NotImplementedError(f"fused_bias_act(): {asked[0]}, quantisation on the way in or out, is missing")
    out = x if bias is None else op("add")(x, bias)
    gates = {"swiglu": "silu", "geglu": "gelu"}
    if act_method not in gates:
        return activate("fused_bias_act", out, act_method)
    gate, value = op("chunk")(out, 2, -1)
    return op(gates[act_method])(gate) * value

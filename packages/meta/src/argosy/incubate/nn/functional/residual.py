"""Dropout, residual connections and the feed-forward part of a transformer."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

from argosy.argument_checks import validate_call
from argosy.incubate.nn.functional.linear import activate, fused_matmul_bias
from argosy.nn import functional as F
from argosy_tensorcore.tensor import Tensor

__all__ = ["check_ring", "fused_bias_dropout_residual_layer_norm", "fused_dropout_add", "fused_feedforward"]


def check_ring(name: str, ring_id: int) -> None:
    """Raise ``NotImplementedError`` for a part of a layer that is spread over ranks by a ring."""
    if ring_id >= 0:
        raise NotImplementedError(
            f"{name}(): ring_id={ring_id} is not implemented; distributed.shard_tensor spreads weights over ranks"
        )


@validate_call
def fused_dropout_add(
    x: Tensor,
    y: Tensor,
    p: float = 0.5,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """``dropout(x, p) + y``."""
    return F.dropout(x, p, training=training, mode=mode) + y


@validate_call
def fused_bias_dropout_residual_layer_norm(
    x: Tensor,
    residual: Tensor,
    bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """``layer_norm(residual + dropout(x + bias))`` along the last axis."""
    out = F.dropout(x if bias is None else x + bias, dropout_rate, training=training, mode=mode)
    return F.layer_norm(residual + out, x.shape[-1:], ln_scale, ln_bias, ln_epsilon)


@validate_call
def fused_feedforward(
    x: Tensor,
    linear1_weight: Tensor,
    linear2_weight: Tensor,
    linear1_bias: Tensor | None = None,
    linear2_bias: Tensor | None = None,
    ln1_scale: Tensor | None = None,
    ln1_bias: Tensor | None = None,
    ln2_scale: Tensor | None = None,
    ln2_bias: Tensor | None = None,
    dropout1_rate: float = 0.5,
    dropout2_rate: float = 0.5,
    activation: str = "relu",
    ln1_epsilon: float = 1e-5,
    ln2_epsilon: float = 1e-5,
    pre_layer_norm: bool = False,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    name: str | None = None,
) -> Tensor:
    """``x + dropout2(linear2(dropout1(activation(linear1(x)))))``, normalised at the end by ``ln2``, or, with
    ``pre_layer_norm``, with what goes into ``linear1`` normalised by ``ln1``; without ``x`` in front unless
    ``add_residual``. x: [..., d_model]."""
    check_ring("fused_feedforward", ring_id)
    width = x.shape[-1:]
    out = F.layer_norm(x, width, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    out = activate("fused_feedforward", fused_matmul_bias(out, linear1_weight, linear1_bias), activation)
    out = F.dropout(out, dropout1_rate, training=training, mode=mode)
    out = F.dropout(fused_matmul_bias(out, linear2_weight, linear2_bias), dropout2_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    return out if pre_layer_norm else F.layer_norm(out, width, ln2_scale, ln2_bias, ln2_epsilon)

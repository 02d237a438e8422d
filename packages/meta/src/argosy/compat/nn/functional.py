"""Functions that take ``input`` and ``dim``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.framework.creation import assign
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["linear", "pad", "scaled_dot_product_attention", "softmax", "unfold"]


@validate_call
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``, computed in ``dtype`` if given; put in ``out`` if given.

    Without ``dim`` it is 0 for tensors with zero, one or three axes, else 1. ``nn.functional.softmax`` takes ``x`` and
    ``axis`` instead.
    """
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    found: Tensor = op("softmax")(input, dim, None if dtype is None else as_dtype(dtype).name)
    return found if out is None else assign(found, out)


@validate_call
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias`` with weight [out_features, in_features]."""
    found: Tensor = op("matmul")(input, weight, False, True)
    return found if bias is None else op("add")(found, bias)


@validate_call
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``nn.functional.scaled_dot_product_attention`` of operands [batch, heads, steps, width] or [heads, steps, width].

    Raises RuntimeError for a mask with ``is_causal``.
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): attn_mask should be None with is_causal=True")
    if query.ndim == 3:
        batch: list[Any] = [x.unsqueeze(0) for x in (query, key, value)]
        attend: Any = scaled_dot_product_attention
        return attend(*batch, attn_mask, dropout_p, is_causal, scale, enable_gqa).squeeze(0)  # type: ignore[no-any-return]
    operands = [x.swapaxes(-3, -2) for x in (query, key, value)]
    settings: dict[str, Any] = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    function: Any = F.scaled_dot_product_attention
    found = function(*operands, attn_mask, enable_gqa=enable_gqa, **settings)
    return found.swapaxes(-3, -2)  # type: ignore[no-any-return]


@validate_call
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of [N, C, H, W] as columns [N, C * kernel elements, windows]."""
    return F.unfold(input, kernel_size, stride, padding, dilation)


@validate_call
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """``input`` with elements before and after its last axis (the first two numbers of ``pad``), the one before, ...

    mode: "constant" (``value``), "reflect", "replicate" or "circular"; all but the first are of the last one to three
    axes and need two axes at least. Raises ValueError for another mode and for sizes of more axes.
    """
    sizes = [int(size) for size in pad]
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(f"pad(): argument 'mode' should be constant, reflect, replicate or circular, got {mode!r}")
    spatial = input.ndim if mode == "constant" else min(input.ndim - 1, 3)
    sizes += [0] * (len(sizes) % 2)
    if len(sizes) > 2 * spatial:
        raise ValueError(f"pad(): argument 'pad' should hold up to {spatial} pairs for {input.ndim} axes, got {sizes}")
    if mode == "constant":
        by_axis = [sizes[at : at + 2] for at in range(0, len(sizes), 2)] + [[0, 0]] * (input.ndim - len(sizes) // 2)
        return F.pad(input, [n for pair in reversed(by_axis) for n in pair], value=value, pad_from_left_axis=True)
    lacking = 5 - input.ndim
    wide = op("unsqueeze")(input, list(range(lacking))) if lacking else input
    found = F.pad(wide, [*sizes, *[0] * (6 - len(sizes))], mode=mode, data_format="NCDHW")
    return op("squeeze")(found, list(range(lacking))) if lacking else found

"""Layers as functions that make their own parameters, as static programs write them."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from argosy import nn
from argosy.argument_checks import validate_call
from argosy.framework.creation import make_parameter
from argosy.framework.param_attr import as_param_attr
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.named_activations import activate
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore import naming
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "batch_norm",
    "bilinear_tensor_product",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "plain_attribute",
    "prelu",
    "require_sizes",
    "row_conv",
    "spectral_norm",
]  # fmt: skip


def require_sizes(function: str, x: Tensor, axes: Sequence[int]) -> list[int]:
    """Sizes of these axes. Raises ValueError where one is open: parameters have shapes of numbers."""
    sizes = [x.shape[axis] for axis in axes]
    if not all(isinstance(n, int) for n in sizes):
        raise ValueError(f"static.nn.{function}(): axes {list(axes)} need known sizes for parameters, got {x.shape}")
    return sizes


def _parameter(
    owner: str, shape: Sequence[int], dtype: Any, attr: Any = None, is_bias: bool = False, initial: Any = None
) -> Tensor:
    """A parameter of the layer ``owner``, by which it is named: ``fc_0.w_0``. Raises ValueError where ``attr`` is
    False."""
    chosen = as_param_attr(attr)
    if chosen is None:
        raise ValueError(f"static.nn: the attr of a parameter of {owner} is False, which asks for none")
    return make_parameter(owner, shape, chosen, dtype, is_bias, initial)


@validate_call
def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Tensor:
    """``activation(x W + b)``: axes of ``x`` from ``num_flatten_dims`` on are one, of which ``size`` outputs are made.

    x: a tensor, or a list of them, whose products are summed. Raises ValueError for a size that is not known.
    """
    inputs = list(x) if isinstance(x, (list, tuple)) else [x]
    attributes = list(weight_attr) if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    owner = name or naming.generate("fc")
    total: Any = None
    for each, attr in zip(inputs, attributes, strict=True):
        kept = num_flatten_dims % each.ndim
        flat = get_operator("reshape")(
            each, [*each.shape[:kept], prod(require_sizes("fc", each, range(kept, each.ndim)))]
        )
        made = get_operator("matmul")(flat, _weight(owner, [flat.shape[-1], size], attr, each.dtype))
        total = made if total is None else total + made
    if bias_attr is not False:
        total = total + _parameter(owner, [size], total.dtype, bias_attr, True)
    return activate(total, activation)


def plain_attribute(attr: Any) -> Any:
    """``attr``. Raises NotImplementedError for a weight of direction and length, which ``fc`` alone makes."""
    if hasattr(attr, "weight_norm_axis"):
        raise NotImplementedError("WeightNormParamAttr of other layers than static.nn.fc is not implemented")
    return attr


def _weight(owner: str, shape: Sequence[int], attr: Any, dtype: Any) -> Tensor:
    """A parameter, or what :class:`WeightNormParamAttr` makes of direction and length."""
    axis = getattr(attr, "weight_norm_axis", False)
    weight = _parameter(owner, shape, dtype, attr)
    if axis is False:
        return weight
    axes = [i for i in range(len(shape)) if i != axis]
    length = (weight * weight).sum(axes, keepdim=True).sqrt()
    scale = _parameter(owner, [] if axis is None else [shape[axis]], dtype, initial=Constant(1.0))
    shaped = scale if axis is None else scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return weight / length * shaped


@validate_call
def embedding(
    input: Tensor,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Tensor:
    """Rows of a table of ``size`` [rows, width] for the integers of ``input``; zeros for ``padding_idx``."""
    weight = _parameter(naming.generate("embedding"), list(size), dtype, plain_attribute(param_attr))
    return F.embedding(input, weight, padding_idx=padding_idx)


def _convolution(
    kind: Any, input: Tensor, filters: int, size: Any, rest: dict[str, Any], act: str | None, layout: str
) -> Tensor:
    channels = require_sizes(kind.__name__, input, [layout.index("C")])[0]
    return activate(kind(channels, filters, size, data_format=layout, **rest)(input), act)


@validate_call
def conv2d(
    input: Tensor,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """``act(nn.Conv2D(...)(input))``."""
    rest = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups or 1}
    rest |= {"weight_attr": plain_attribute(param_attr), "bias_attr": bias_attr}
    return _convolution(nn.Conv2D, input, num_filters, filter_size, rest, act, data_format)


@validate_call
def conv3d(
    input: Tensor,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Tensor:
    """``act(nn.Conv3D(...)(input))``."""
    rest = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups or 1}
    rest |= {"weight_attr": plain_attribute(param_attr), "bias_attr": bias_attr}
    return _convolution(nn.Conv3D, input, num_filters, filter_size, rest, act, data_format)


@validate_call
def conv2d_transpose(
    input: Tensor,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """``act(nn.Conv2DTranspose(...)(input))``. Without ``filter_size`` it follows from ``output_size``."""
    rest = (stride, padding, dilation, groups, plain_attribute(param_attr), bias_attr)
    kind = nn.Conv2DTranspose
    return _transposed_convolution(kind, input, num_filters, output_size, filter_size, rest, act, data_format)


@validate_call
def conv3d_transpose(
    input: Tensor,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Tensor:
    """``act(nn.Conv3DTranspose(...)(input))``. Without ``filter_size`` it follows from ``output_size``."""
    rest = (stride, padding, dilation, groups, plain_attribute(param_attr), bias_attr)
    kind = nn.Conv3DTranspose
    return _transposed_convolution(kind, input, num_filters, output_size, filter_size, rest, act, data_format)


def _transposed_convolution(
    kind: Any, x: Tensor, filters: int, output: Any, size: Any, rest: Sequence[Any], act: str | None, layout: str
) -> Tensor:
    stride, padding, dilation, groups, weight_attr, bias_attr = rest
    spatial = [i for i, letter in enumerate(layout) if letter not in "NC"]
    if size is None:
        if output is None or isinstance(padding, str):
            raise ValueError(
                f"static.nn.{kind.__name__}: filter_size, or output_size and padding in numbers, is needed"
            )
        sizes, wanted = require_sizes(kind.__name__, x, spatial), _each(output, len(spatial))
        steps, pads, gaps = (_each(n, len(spatial)) for n in (stride, padding, dilation))
        size = [
            (w - (n - 1) * s + 2 * p - 1) // d + 1
            for w, n, s, p, d in zip(wanted, sizes, steps, pads, gaps, strict=True)
        ]
    channels = require_sizes(kind.__name__, x, [layout.index("C")])[0]
    made = kind(
        channels, filters, size, stride=stride, padding=padding, dilation=dilation, groups=groups or 1,
        weight_attr=weight_attr, bias_attr=bias_attr, data_format=layout,
    )  # fmt: skip
    return activate(made(x, output_size=output), act)


def _each(n: Any, count: int) -> list[int]:
    return list(n) if isinstance(n, (list, tuple)) else [n] * count


@validate_call
def batch_norm(
    input: Tensor,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Tensor:
    """``act(nn.BatchNorm(...)(input))``: by the batch's statistics unless ``is_test`` or ``use_global_stats``."""
    (channels,) = require_sizes("batch_norm", input, [1 if data_layout == "NCHW" else input.ndim - 1])
    layer = nn.BatchNorm(
        channels, act=act, is_test=is_test, momentum=momentum, epsilon=epsilon, param_attr=plain_attribute(param_attr),
        bias_attr=bias_attr, data_layout=data_layout, moving_mean_name=moving_mean_name,
        moving_variance_name=moving_variance_name, use_global_stats=use_global_stats,
    )  # fmt: skip
    if is_test:
        layer.eval()
    return layer(input)


@validate_call
def layer_norm(
    input: Tensor,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Tensor:
    """``input`` standardised over axes from ``begin_norm_axis`` on, scaled and shifted by parameters of one axis."""
    axes = range(begin_norm_axis % input.ndim, input.ndim)
    sizes = require_sizes("layer_norm", input, axes)
    owner, size, ones = name or naming.generate("layer_norm"), [prod(sizes)], Constant(1.0)
    weight = _parameter(owner, size, input.dtype, plain_attribute(param_attr), initial=ones) if scale else None
    bias = _parameter(owner, size, input.dtype, bias_attr, True) if shift else None
    shaped: dict[str, Any] = {key: p.reshape(sizes) for key, p in (("weight", weight), ("bias", bias)) if p is not None}
    return activate(F.layer_norm(input, sizes, epsilon=epsilon, **shaped), act)


@validate_call
def group_norm(
    input: Tensor,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """``act(nn.GroupNorm(...)(input))``."""
    (channels,) = require_sizes("group_norm", input, [1 if data_layout == "NCHW" else input.ndim - 1])
    rest = {"weight_attr": plain_attribute(param_attr), "bias_attr": bias_attr, "data_format": data_layout}
    return activate(nn.GroupNorm(groups, channels, epsilon, **rest)(input), act)


@validate_call
def instance_norm(
    input: Tensor, epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None, name: str | None = None
) -> Tensor:
    """Each channel of each sample of [N, C, ...] standardised, then scaled and shifted (not where attrs are False)."""
    (channels,) = require_sizes("instance_norm", input, [1])
    weight, bias = None, None
    if param_attr is not False:
        owner = name or naming.generate("instance_norm")
        weight = _parameter(owner, [channels], input.dtype, plain_attribute(param_attr), initial=Constant(1.0))
        bias = _parameter(owner, [channels], input.dtype, bias_attr, True)
    return F.instance_norm(input, weight=weight, bias=bias, eps=epsilon)


@validate_call
def prelu(x: Tensor, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """``max(x, 0) + w min(x, 0)`` with one learnt w ("all"), one a "channel", or one an "element" of a sample."""
    channel = 1 if data_format == "NCHW" else x.ndim - 1
    if mode not in ("all", "channel", "element"):
        raise ValueError(f"static.nn.prelu(): mode is 'all', 'channel' or 'element', got {mode!r}")
    owner = name or naming.generate("prelu")
    if mode == "element":
        shape = [1, *require_sizes("prelu", x, range(1, x.ndim))]
        weight = _parameter(owner, shape, x.dtype, plain_attribute(param_attr), initial=Constant(0.25))
        zero = get_operator("zeros_like")(x)
        return get_operator("maximum")(x, zero) + weight * get_operator("minimum")(x, zero)
    shape = [1] if mode == "all" else require_sizes("prelu", x, [channel])
    weight = _parameter(owner, shape, x.dtype, plain_attribute(param_attr), initial=Constant(0.25))
    return F.prelu(x, weight, data_format=data_format)


@validate_call
def bilinear_tensor_product(
    x: Tensor,
    y: Tensor,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Tensor:
    """``x W_i y^T + b_i`` for each i below ``size``; x: [N, m], y: [N, n]."""
    left, right = (require_sizes("bilinear_tensor_product", each, [1])[0] for each in (x, y))
    return activate(nn.Bilinear(left, right, size, plain_attribute(param_attr), bias_attr)(x, y), act)


@validate_call
def spectral_norm(
    weight: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Tensor:
    """``weight`` over its largest singular value, as a matrix of rows along ``dim`` (Miyato et al., 2018)."""
    shape = require_sizes("spectral_norm", weight, range(weight.ndim))
    return nn.SpectralNorm(shape, dim=dim, power_iters=power_iters, eps=eps)(weight)


@validate_call
def row_conv(input: Tensor, future_context_size: int, param_attr: Any = None, act: str | None = None) -> Tensor:
    """Each step of ``input`` [N, T, D] with the ``future_context_size`` steps after it, weighed for each feature; a
    sequence [T, D] is one of N = 1."""
    if input.ndim == 2:
        return row_conv(input.unsqueeze(0), future_context_size, param_attr, act).squeeze(0)
    (width,) = require_sizes("row_conv", input, [2])
    owner = naming.generate("row_conv")
    weight = _parameter(owner, [future_context_size + 1, width], input.dtype, plain_attribute(param_attr))
    padded = F.pad(input, [0, future_context_size], data_format="NLC")
    steps = input.shape[1]
    total: Any = None
    for i in range(future_context_size + 1):
        term = padded[:, i : i + steps] * weight[i]
        total = term if total is None else total + term
    return activate(total, act)

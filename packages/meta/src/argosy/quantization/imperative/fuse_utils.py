"""Batch norms of evaluation taken into the layer before them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

from argosy import nn
from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad

__all__ = ["fuse_conv_bn", "fuse_layers", "replace"]

AnyLayer = TypeVar("AnyLayer", bound=Layer)


def replace(model: Layer, name: str, layer: Layer) -> None:
    """Put ``layer`` in the place of the sublayer of that dotted name, in training where that is."""
    parent, _, last = name.rpartition(".")
    training = model.get_sublayer(name).training
    for one in layer.sublayers(include_self=True):
        one.training = training
    setattr(model.get_sublayer(parent), last, layer)


def fuse_conv_bn(model: Layer) -> None:
    """Fuse each ``BatchNorm2D`` of ``model`` with the ``Conv2D`` before it, by its running statistics."""
    pairs, before = [], None
    for name, layer in model.named_sublayers():
        if isinstance(layer, nn.Conv2D):
            before = name
        elif isinstance(layer, nn.BatchNorm2D) and before is not None:
            pairs.append([before, name])
            before = None
    fuse_layers(model, pairs, inplace=True)


def fuse_layers(model: AnyLayer, layers_to_fuse: Sequence[Sequence[str]], inplace: bool = False) -> AnyLayer:
    """The model (or a copy) with pairs of layers fused: the first becomes both, the second the identity.

    layers_to_fuse: pairs of dotted names, of a ``Conv2D`` and a ``BatchNorm2D``, or of a ``Linear`` and a
    ``BatchNorm1D``. Raises TypeError for others.
    """
    made = model if inplace else copy.deepcopy(model)
    for first, second in layers_to_fuse:
        layer, norm = made.get_sublayer(first), made.get_sublayer(second)
        if (type(layer), type(norm)) not in ((nn.Conv2D, nn.BatchNorm2D), (nn.Linear, nn.BatchNorm1D)):
            raise TypeError(f"fuse_layers(): {type(layer).__name__} and {type(norm).__name__} cannot be fused")
        replace(made, first, _fuse(layer, norm))
        replace(made, second, nn.Identity())
    return made


def _fuse(layer: Any, norm: Any) -> Layer:
    """A copy of ``layer`` with the norm in its weight and bias; it keeps its hooks, and runs those after the norm."""
    made = copy.deepcopy(layer)
    with no_grad():
        factor = (norm._variance + norm._epsilon).rsqrt()
        if norm.weight is not None:
            factor = factor * norm.weight
        shift = -norm._mean if layer.bias is None else layer.bias - norm._mean
        shift = shift * factor if norm.bias is None else shift * factor + norm.bias
        spread = factor.reshape([-1, 1, 1, 1]) if isinstance(layer, nn.Conv2D) else factor
        made.weight.set_value(layer.weight * spread)
        if made.bias is None:
            made.bias = made.create_parameter(shift.shape, dtype=shift.dtype, is_bias=True)
        made.bias.set_value(shift)
    for hook, _ in norm._forward_post_hooks.values():
        made.register_forward_post_hook(hook)
    return made  # type: ignore[no-any-return]

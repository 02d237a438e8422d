"""Weight normalisation: a weight as the product of a direction and a length (Salimans and Kingma, 2016)."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import write

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook that computes ``name`` of a layer from ``name_g`` and ``name_v`` before each forward.

    dim: the axis that lengths are kept for; -1 for one length of the whole weight.
    """

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def __call__(self, layer: Any, inputs: Any) -> None:
        """Set the weight anew."""
        setattr(layer, self.name, self.compute(layer))

    def compute(self, layer: Any) -> Any:
        """``g * v / |v|``."""
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        if self.dim == -1:
            return v / lengths(v, -1) * g
        shape = [1] * v.ndim
        shape[self.dim] = v.shape[self.dim]
        return v / lengths(v, self.dim).reshape(shape) * g.reshape(shape)


def lengths(weight: Any, dim: int) -> Any:
    """The 2-norm over all axes but ``dim``; over all for -1."""
    square = weight * weight
    if dim == -1:
        return square.sum().sqrt()
    return square.sum([axis for axis in range(weight.ndim) if axis != dim]).sqrt()


@validate_call
def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Replace parameter ``name`` by ``name_v`` and ``name_g``, of which it is computed before each forward.

    dim: the axis that keeps a length of its own at each index; None or -1 for one length. Raises ValueError for an axis
    outside the weight, RuntimeError for a second call.
    """
    if any(isinstance(hook, WeightNorm) and hook.name == name for hook, _ in layer._forward_pre_hooks.values()):
        raise RuntimeError(f"weight_norm: {name} of this {type(layer).__name__} is normalised already")
    weight: Any = layer._parameters.get(name)
    if weight is None:
        raise ValueError(f"weight_norm: {type(layer).__name__} has no parameter {name!r}")
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise ValueError(f"weight_norm: dim {dim} is outside a weight of {weight.ndim} axes")
    axis = -1 if dim is None or dim == -1 else dim % weight.ndim
    del layer._parameters[name]
    with no_grad():
        parts = {f"{name}_v": weight.detach(), f"{name}_g": lengths(weight, axis)}
        for part, value in parts.items():
            _add(layer, part, value)
    hook = WeightNorm(name, axis)
    hook(layer, None)
    layer.register_forward_pre_hook(hook)
    return layer


def _add(layer: Layer, name: str, value: Any) -> None:
    parameter = layer.create_parameter(list(value.shape), dtype=value.dtype)
    assert parameter is not None  # it is None for attr=False alone
    write(parameter, value)
    layer.add_parameter(name, parameter)


@validate_call
def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make ``name`` a parameter again. Raises ValueError when it is not normalised."""
    for key, (hook, _) in list(layer._forward_pre_hooks.items()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            with no_grad():
                weight = hook.compute(layer)
                delattr(layer, name)
                del layer._parameters[f"{name}_g"], layer._parameters[f"{name}_v"]
                _add(layer, name, weight)
            del layer._forward_pre_hooks[key]
            return layer
    raise ValueError(f"remove_weight_norm: {name!r} of this {type(layer).__name__} is not normalised")

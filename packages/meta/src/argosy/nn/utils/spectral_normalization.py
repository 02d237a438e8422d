"""Spectral normalisation of a layer's weight (Miyato et al., 2018)."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy.nn.spectrum import as_matrix, largest_singular_value
from argosy_autograd.modes import no_grad

__all__ = ["SpectralNormHook", "spectral_norm"]

_COLUMNS = ("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "Linear")
"""Layers whose outputs are the second axis of the weight."""


class SpectralNormHook:
    """Computes ``name`` of a layer before each forward: ``name_orig`` over its largest singular value.

    The singular vectors are the buffers ``name_u`` and ``name_v``; training moves them by power iterations.
    """

    def __init__(self, name: str, dim: int, iterations: int, eps: float) -> None:
        self.name, self.dim, self.iterations, self.eps = name, dim, iterations, eps

    def __call__(self, layer: Any, inputs: Any) -> None:
        """Set the weight anew."""
        weight, u, v = (getattr(layer, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        iterations = self.iterations if layer.training else 0
        setattr(layer, self.name, weight / largest_singular_value(weight, u, v, self.dim, iterations, self.eps))


@validate_call
def spectral_norm(
    layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Let parameter ``name`` be divided by its largest singular value before each forward.

    dim: the axis that becomes the rows of the matrix; by default that of the layer's outputs. Raises ValueError for no
    iterations or an unknown parameter, RuntimeError for a second call.
    """
    if not isinstance(layer, Layer):
        raise TypeError(f"spectral_norm(): argument 'layer' must be a Layer, got {layer!r:.80}")
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
    if any(isinstance(hook, SpectralNormHook) and hook.name == name for hook, _ in layer._forward_pre_hooks.values()):
        raise RuntimeError(f"spectral_norm: {name} of this {type(layer).__name__} is normalised already")
    weight: Any = layer._parameters.get(name)
    if weight is None:
        raise ValueError(f"spectral_norm: {type(layer).__name__} has no parameter {name!r}")
    if dim is None:
        dim = 1 if any(base.__name__ in _COLUMNS for base in type(layer).__mro__) else 0
    with no_grad():
        rows, columns = as_matrix(weight, dim).shape
        vectors = [F.normalize(F.randn([n]).astype(weight.dtype), axis=0, epsilon=eps) for n in (rows, columns)]
    del layer._parameters[name]
    layer.add_parameter(f"{name}_orig", weight)
    setattr(layer, name, weight * 1.0)
    for part, vector in zip("uv", vectors, strict=True):
        layer.register_buffer(f"{name}_{part}", vector)
    layer.register_forward_pre_hook(SpectralNormHook(name, dim, n_power_iterations, eps))
    return layer

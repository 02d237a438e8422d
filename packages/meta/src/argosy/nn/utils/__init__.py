"""Helpers for parameters of layers: vectors of them, gradients within bounds, reparameterised weights."""

from argosy.faces import face

_TABLE = {
    **{name: f"argosy.nn.utils.vectors:{name}" for name in ("parameters_to_vector", "vector_to_parameters")},
    **{name: f"argosy.nn.utils.clipping:{name}" for name in ("clip_grad_norm_", "clip_grad_value_")},
    **{name: f"argosy.nn.utils.weight_normalization:{name}" for name in ("weight_norm", "remove_weight_norm")},
    "spectral_norm": "argosy.nn.utils.spectral_normalization:spectral_norm",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

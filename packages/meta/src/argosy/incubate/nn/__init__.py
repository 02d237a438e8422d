"""Layers that Paddle has as kernels of their own: compositions here, which the compiler fuses."""

from argosy.faces import face

_LAYERS = {
    "linear": ("FusedLinear", "FusedDropout", "FusedDropoutAdd", "FusedBiasDropoutResidualLayerNorm"),
    "transformer": ("FusedMultiHeadAttention", "FusedFeedForward", "FusedTransformerEncoderLayer"),
    "absent": ("FusedMultiTransformer",),
}
_TABLE = {
    "functional": "argosy.incubate.nn.functional",
    **{name: f"argosy.incubate.nn.{module}:{name}" for module, names in _LAYERS.items() for name in names},
}

__all__ = [name for names in _LAYERS.values() for name in names]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

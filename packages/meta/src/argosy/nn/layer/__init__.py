"""``Layer``, and layers in the modules where Paddle defines them (``nn.layer.norm.LayerNorm``), loaded when used."""

from argosy.faces import face
from argosy.nn.layer.layers import Layer, own_dtype

__all__ = ["Layer", "own_dtype"]

_MODULES = (
    "activation", "common", "container", "conv", "distance", "loss", "norm", "pooling", "rnn", "transformer", "vision",
)  # fmt: skip

__getattr__, __dir__ = face(__name__, {name: f"argosy.nn.layer.{name}" for name in _MODULES}, globals())

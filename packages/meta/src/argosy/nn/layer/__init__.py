"""``Layer``, and layers in the modules where Paddle defines them (``nn.layer.norm.LayerNorm``), loaded when used."""

from importlib import import_module

from argosy.faces import face
from argosy.nn.layer.layers import Layer, own_dtype

__all__ = ["Layer", "own_dtype"]

_MODULES = (
    "activation", "common", "container", "conv", "distance", "loss", "norm", "pooling", "rnn", "transformer", "vision",
)  # fmt: skip


def _layer(name: str) -> object | None:
    """The class of that name in ``argosy.nn``: Paddle's package of modules has most layers, too."""
    found: object | None = getattr(import_module("argosy.nn"), name, None) if name[:1].isupper() else None
    return found


__getattr__, __dir__ = face(__name__, {name: f"argosy.nn.layer.{name}" for name in _MODULES}, globals(), _layer)

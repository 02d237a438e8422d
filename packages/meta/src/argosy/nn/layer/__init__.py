"""``Layer``, and layers in the modules where Paddle defines them (``nn.layer.norm.LayerNorm``), loaded when used."""

from importlib import import_module

from argosy.api import lazy_names
from argosy.nn.layer.layers import Layer

__all__ = ["Layer"]


def _layer(name: str) -> object | None:
    """The class of that name in ``argosy.nn``: Paddle's package of modules has most layers, too."""
    found: object | None = getattr(import_module("argosy.nn"), name, None) if name[:1].isupper() else None
    return found


__getattr__, __dir__ = lazy_names(__name__, globals(), _layer)

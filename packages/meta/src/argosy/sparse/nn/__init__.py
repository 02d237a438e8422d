"""Layers of sparse tensors."""

from argosy.api import lazy_names, targets

__all__ = [*targets(__name__)]
__getattr__, __dir__ = lazy_names(__name__, globals())

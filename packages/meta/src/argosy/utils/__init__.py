"""Helpers of user code: imports that say what to install, versions, names, exchange of tensors, nests of them."""

from argosy.api import lazy_names, targets

__all__ = [*targets(__name__)]
__getattr__, __dir__ = lazy_names(__name__, globals())

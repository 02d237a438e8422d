"""Automatic differentiation: everything lives in ``argosy_autograd``."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

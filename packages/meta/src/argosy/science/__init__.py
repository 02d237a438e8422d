"""Tools for science on top of differentiable programs."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

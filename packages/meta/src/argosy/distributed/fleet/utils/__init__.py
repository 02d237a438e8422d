"""``distributed.fleet.utils``: recomputation, and means of gradients by hand."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

"""Data sets of pictures, from local files."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

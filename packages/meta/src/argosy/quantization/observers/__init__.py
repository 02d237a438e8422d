"""Observers: what passes is kept track of and left as it is."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

"""Optimizers around another one, and those that have moved, under their older address."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

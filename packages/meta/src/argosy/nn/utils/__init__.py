"""Helpers for parameters of layers: vectors of them, gradients within bounds, reparameterised weights."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

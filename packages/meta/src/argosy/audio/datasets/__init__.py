"""Recordings and what they are of, from local folders. Nothing is downloaded."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

"""Signals: frames of them, short-time Fourier transforms, windows."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

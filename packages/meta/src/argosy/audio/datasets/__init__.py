"""Recordings and what they are of, from local folders. Nothing is downloaded."""

from argosy.faces import face

_TABLE = {"ESC50": "argosy.audio.datasets.esc50:ESC50", "TESS": "argosy.audio.datasets.tess:TESS"}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

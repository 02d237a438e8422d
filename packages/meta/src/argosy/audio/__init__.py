"""Audio: spectrograms and what follows from them, windows, files of uncompressed sound, and data sets."""

from argosy.faces import face

_TABLE = {
    "backends": "argosy.audio.backends",
    "datasets": "argosy.audio.datasets",
    "features": "argosy.audio.features",
    "functional": "argosy.audio.functional",
    **{name: f"argosy.audio.backends:{name}" for name in ("info", "load", "save")},
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

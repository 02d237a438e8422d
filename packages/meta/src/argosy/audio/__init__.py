"""Audio: spectrograms and what follows from them, windows, files of uncompressed sound, and data sets."""

from argosy.api import lazy_names, targets

__all__ = [*targets(__name__)]
__getattr__, __dir__ = lazy_names(__name__, globals())

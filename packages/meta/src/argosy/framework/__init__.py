"""Names of the framework at large: flags, modes, places of other builds, readers."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

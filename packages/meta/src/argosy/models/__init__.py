"""Language models as ordinary ``nn`` code, by family, and the folders that hold them."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

"""Training of annotated models without loops of one's own; annotations are in ``argosy.distributed``."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

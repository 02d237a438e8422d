"""Learning on graphs: messages along edges, reductions over segments, neighbourhoods."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

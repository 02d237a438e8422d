"""Loading: batches put together here or in worker processes, which hand them over through shared memory."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

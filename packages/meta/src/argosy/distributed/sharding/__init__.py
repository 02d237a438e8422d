"""Training with states, gradients and parameters split over ranks that have batches of their own."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

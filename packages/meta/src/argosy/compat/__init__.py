"""Functions with the signatures of another framework, as Paddle keeps them under ``paddle.compat``."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())

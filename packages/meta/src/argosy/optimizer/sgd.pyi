"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.momentum import SGD as SGD

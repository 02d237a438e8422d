"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.adaptive import Adadelta as Adadelta

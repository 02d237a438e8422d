"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.moments import Lamb as Lamb

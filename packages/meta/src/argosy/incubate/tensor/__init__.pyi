"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.tensor import manipulation as manipulation

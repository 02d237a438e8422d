"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.distributed import fleet as fleet

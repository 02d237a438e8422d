"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.context_plans import ContextParallel as ContextParallel
from argosy.distributed.context_plans import PrepareContextParallel as PrepareContextParallel

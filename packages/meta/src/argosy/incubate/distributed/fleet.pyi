"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.recompute.recompute import recompute_hybrid as recompute_hybrid
from argosy.distributed.fleet.recompute.recompute import recompute_sequential as recompute_sequential

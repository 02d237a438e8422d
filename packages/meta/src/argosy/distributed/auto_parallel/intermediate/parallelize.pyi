"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.parallelizing import parallelize as parallelize

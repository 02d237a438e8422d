"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.local_parts import local_map as local_map

"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.local_layer import LocalLayer as LocalLayer

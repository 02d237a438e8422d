"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.flex_checkpoint import dcp as dcp

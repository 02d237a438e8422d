"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.pipeline.marks import SplitPoint as SplitPoint

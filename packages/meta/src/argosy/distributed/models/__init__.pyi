"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.models import moe as moe

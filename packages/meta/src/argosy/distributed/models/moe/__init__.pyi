"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.models.moe import utils as utils

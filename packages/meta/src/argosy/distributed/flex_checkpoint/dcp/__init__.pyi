"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.flex_checkpoint.dcp import sharded_weight as sharded_weight

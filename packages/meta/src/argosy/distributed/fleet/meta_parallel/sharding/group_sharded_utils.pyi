"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.absent import GroupShardedScaler as GroupShardedScaler

"""Where Paddle has the scaler of split gradients, which raises NotImplementedError."""

from argosy.distributed.fleet.absent import GroupShardedScaler

__all__ = ["GroupShardedScaler"]

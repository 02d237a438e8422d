"""Fully sharded data parallel training: parameters, gradients and optimizer states split over all ranks."""

from argosy.distributed.fsdp.fully_shard import MixedPrecisionPolicy, OffloadPolicy, fully_shard

__all__ = ["MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]

"""Models on a grid of ranks, as ``fleet.distributed_model`` makes them: what ranks have in common begins alike."""

from __future__ import annotations

from typing import Any

from argosy.distributed.wrapped_layer import WrappedLayer, equalize
from argosy.nn.layer import Layer

__all__ = ["SegmentParallel", "ShardingParallel", "TensorParallel"]


class _Parallel(WrappedLayer):
    """``layers`` on the grid ``hcg``; calls are those of ``layers``, and so are its states and their names."""

    def __init__(self, layers: Layer, hcg: Any, strategy: Any = None) -> None:
        super().__init__(layers)
        self._hcg, self._strategy = hcg, strategy
        equalize(layers, hcg.get_model_parallel_group(), split_too=False)
        for group in (hcg.get_sharding_parallel_group(), hcg.get_dp_sep_parallel_group()):
            equalize(layers, group, split_too=True)


class TensorParallel(_Parallel):
    """A model of layers that are split over ranks, as ``ColumnParallelLinear`` is."""


class ShardingParallel(_Parallel):
    """A model whose optimizer's states are split over ranks, each with data of its own."""


class SegmentParallel(_Parallel):
    """A model each of whose ranks has a part of every sequence; gradients are averaged over the parts."""

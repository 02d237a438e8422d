"""Models on a grid of ranks, as ``fleet.distributed_model`` makes them: what ranks have in common begins alike."""

from __future__ import annotations

from typing import Any

from argosy.distributed.collective import broadcast
from argosy.distributed.group import Group
from argosy.nn.layer import Layer

__all__ = ["SegmentParallel", "ShardingParallel", "TensorParallel", "equalize"]


def equalize(model: Layer, group: Group, split_too: bool) -> None:
    """Give every member the first one's parameters and buffers; those of split layers where ``split_too``."""
    if group.nranks == 1:
        return
    for tensor in (*model.parameters(), *model.buffers()):
        if split_too or not getattr(tensor, "is_distributed", False):
            broadcast(tensor, group.ranks[0], group)


class _Parallel(Layer):
    """``layers`` on the grid ``hcg``; calls are those of ``layers``, and so are its states and their names."""

    def __init__(self, layers: Layer, hcg: Any, strategy: Any = None) -> None:
        super().__init__()
        self._layers, self._hcg, self._strategy = layers, hcg, strategy
        equalize(layers, hcg.get_model_parallel_group(), split_too=False)
        for group in (hcg.get_sharding_parallel_group(), hcg.get_dp_sep_parallel_group()):
            equalize(layers, group, split_too=True)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives."""
        return self._layers(*inputs, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of ``layers``, under its own names."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Put back what :meth:`state_dict` gave."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict


class TensorParallel(_Parallel):
    """A model of layers that are split over ranks, as ``ColumnParallelLinear`` is."""


class ShardingParallel(_Parallel):
    """A model whose optimizer's states are split over ranks, each with data of its own."""


class SegmentParallel(_Parallel):
    """A model each of whose ranks has a part of every sequence; gradients are averaged over the parts."""

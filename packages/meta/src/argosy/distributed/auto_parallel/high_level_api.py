"""``to_distributed``: a model, an optimizer and a loader of one device on all ranks, with nobody's annotations.

Products are split in pairs, columns before rows (Shoeybi et al., 2019). Where layers are paired that do not belong
together nothing is wrong: layouts decide what is communicated, and not what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.distributed.environment import get_world_size
from argosy.distributed.node_order import ranks_by_node
from argosy.distributed.plans import ColWiseParallel, PlanBase, RowWiseParallel, SequenceParallelEnable
from argosy.distributed.semi_auto import set_mesh, shard_layer
from argosy.distributed.sharded_loader import ShardDataloader, shard_dataloader
from argosy.distributed.sharded_optimizer import ShardingStage1, shard_optimizer
from argosy.nn.common import Linear
from argosy.nn.container import LayerList
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel import ProcessMesh

__all__ = ["ToDistributedConfig", "to_distributed"]


class ToDistributedConfig:
    """``sequence_parallel``: layers between the products work on parts of the sequence. ``input_spec`` is accepted for
    compatibility: nothing is captured to find out what a model does."""

    def __init__(self) -> None:
        self.input_spec: Any = None
        self.sequence_parallel = False


def to_distributed(
    model: Layer,
    optimizer: Optimizer,
    dataloader: Any,
    device_num: int,
    node_num: int | None = 1,
    config: ToDistributedConfig | None = None,
) -> tuple[Layer, Optimizer, ShardDataloader]:
    """``model``, ``optimizer`` and ``dataloader`` for ``device_num`` ranks on each of ``node_num`` machines: copies
    ("dp") and, where four or more ranks are even in number, pairs ("mp") that share the products in the blocks of a
    ``LayerList``. ``config`` says what else may be split.

    Batches stay those of one process, of which each copy gets its rows; the optimizer's states are split over copies.
    Raises TypeError for what is no layer, ValueError for fewer ranks than one or more than there are.
    """
    if not isinstance(model, Layer):
        raise TypeError(f"to_distributed takes a Layer, not {type(model).__name__}")
    size = device_num * (node_num or 1)
    if size < 1:
        raise ValueError(f"to_distributed: device_num is a number from 1, not {device_num!r}")
    mesh = _mesh_of(size)
    set_mesh(mesh)
    if "mp" in mesh.dim_names:
        for layer, plan in _plans(model, config is not None and config.sequence_parallel):
            plan.apply(layer, mesh, [])
    shard_layer(model, mesh)
    return model, shard_optimizer(optimizer, ShardingStage1("dp")), shard_dataloader(dataloader, mesh, shard_dims="dp")


def _mesh_of(size: int) -> ProcessMesh:
    ranks = ranks_by_node()[:size] if size <= get_world_size() else list(range(size))
    if size >= 4 and size % 2 == 0:
        return ProcessMesh([ranks[i : i + 2] for i in range(0, size, 2)], ["dp", "mp"])
    return ProcessMesh(ranks, ["dp"])


def _plans(model: Layer, sequences: bool) -> Iterator[tuple[Layer, PlanBase]]:
    """The products within blocks: of those of a layer the last takes what the others give. Other layers with weights
    may work on parts of sequences."""
    blocks = [block for layer in model.sublayers() if isinstance(layer, LayerList) for block in layer]
    for layer in (layer for block in blocks for layer in block.sublayers(include_self=True)):
        products = [child for child in layer.children() if isinstance(child, Linear)]
        if len(products) > 1:
            yield from ((product, ColWiseParallel()) for product in products[:-1])
            yield products[-1], RowWiseParallel()
        if sequences and not products and not isinstance(layer, Linear) and layer.parameters(include_sublayers=False):
            yield layer, SequenceParallelEnable()

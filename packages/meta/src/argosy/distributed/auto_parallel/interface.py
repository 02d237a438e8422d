"""Operators and meshes by names of mesh dimensions, as older annotated scripts write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy.distributed.dist_attr import DistAttr
from argosy.distributed.node_order import ranks_by_node
from argosy.distributed.semi_auto import get_mesh, reshard, set_mesh, shard_tensor
from argosy_autoparallel import ProcessMesh
from argosy_tensorcore.tensor import Tensor

__all__ = ["create_mesh", "shard_op"]

Specs = Sequence[Sequence[str | None] | None] | None


def create_mesh(mesh_dims: Sequence[tuple[str, int]]) -> ProcessMesh:
    """The mesh of the first ranks with these dimensions, which becomes the rank's default mesh. Ranks of a machine are
    beside each other, so that the last dimensions lie within one. All ranks call it.

    mesh_dims: name and size of each dimension. Raises ValueError for more ranks than there are.
    """
    sizes, ranks = [size for _, size in mesh_dims], ranks_by_node()
    if prod(sizes) > len(ranks):
        raise ValueError(f"create_mesh: {prod(sizes)} places for {len(ranks)} ranks")
    mesh = ProcessMesh(np.reshape(ranks[: prod(sizes)], sizes), [name for name, _ in mesh_dims])
    set_mesh(mesh)
    return mesh


def shard_op(
    op: Callable[..., Any],
    process_mesh: ProcessMesh | None = None,
    in_shard_specs: Specs = None,
    out_shard_specs: Specs = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """The function ``op`` on a mesh: its tensors come and go in the layouts that these specifications name.

    process_mesh: the mesh, by default that of ``set_mesh``. in_shard_specs: for each tensor among the arguments the
    ``sharding_specs`` of a :class:`DistAttr`, or None for one that is whole; by default all are. out_shard_specs: the
    same for results. kwargs: given to ``op``. Raises ValueError without a mesh; the call does where there are not as
    many tensors as specifications.
    """
    mesh = get_mesh() if process_mesh is None else process_mesh
    if mesh is None:
        raise ValueError("shard_op: give process_mesh, or call set_mesh first")

    def run(*inputs: Any) -> Any:
        made = op(*_lay_out(inputs, mesh, in_shard_specs, "in_shard_specs"), **kwargs)
        outputs = made if isinstance(made, (list, tuple)) else [made]
        placed = _lay_out(outputs, mesh, out_shard_specs, "out_shard_specs")
        return type(made)(placed) if isinstance(made, (list, tuple)) else placed[0]

    return run


def _lay_out(values: Sequence[Any], mesh: ProcessMesh, specs: Specs, name: str) -> list[Any]:
    """The values, of which tensors are laid out as ``specs`` says."""
    count = sum(isinstance(x, Tensor) for x in values)
    if specs is not None and len(specs) != count:
        raise ValueError(f"shard_op: {name} has {len(specs)} specifications for {count} tensors")
    left = iter(specs if specs is not None else [None] * count)
    return [_place(x, mesh, next(left)) if isinstance(x, Tensor) else x for x in values]


def _place(x: Tensor, mesh: ProcessMesh, spec: Sequence[str | None] | None) -> Tensor:
    placements = DistAttr(mesh, spec if spec is not None else [None] * x.ndim).placements
    return shard_tensor(x, mesh, placements) if x.placements is None else reshard(x, mesh, placements)

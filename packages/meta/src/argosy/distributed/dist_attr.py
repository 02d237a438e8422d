"""``DistAttr``: a layout as a mesh and the name of the mesh dimension that each axis of a tensor is split over."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autoparallel import Placement, ProcessMesh, Replicate, Shard

__all__ = ["DistAttr"]


class DistAttr:
    """``sharding_specs`` has for each axis of a tensor the name of a dimension of ``mesh``, or None for one that is
    whole. ``batch_dim``, ``chunk_id``, ``dynamic_dims`` and ``annotated`` are notes of the caller's, which change
    nothing. Raises ValueError for another mesh and for names that it does not have, or has twice.

    >>> import argosy.distributed as dist
    >>> dist.DistAttr(dist.ProcessMesh([[0, 1], [2, 3]], ["x", "y"]), ["y", None]).placements
    [Replicate(), Shard(dim=0)]
    """

    def __init__(self, mesh: ProcessMesh, sharding_specs: Sequence[str | None]) -> None:
        if not isinstance(mesh, ProcessMesh):
            raise ValueError(f"DistAttr: mesh is a ProcessMesh, not {mesh!r}")
        named = [name for name in sharding_specs if name is not None]
        if unknown := [name for name in named if name not in mesh.dim_names]:
            raise ValueError(f"DistAttr: sharding_specs names {unknown}; the mesh has {mesh.dim_names}")
        if len(set(named)) != len(named):
            raise ValueError(f"DistAttr: sharding_specs {list(sharding_specs)} splits two axes over one dimension")
        self.process_mesh = mesh
        self.sharding_specs = list(sharding_specs)
        self.batch_dim = self.chunk_id = 0
        self.dynamic_dims = [False] * len(self.sharding_specs)
        self.annotated = {"dims_mapping": True, "process_mesh": True}

    @property
    def dims_mapping(self) -> list[int]:
        """For each axis the number of the mesh dimension, -1 for none."""
        names = list(self.process_mesh.dim_names)
        return [-1 if name is None else names.index(name) for name in self.sharding_specs]

    @property
    def multi_dims_mapping(self) -> list[list[int]]:
        """For each axis the numbers of the mesh dimensions that split it: one or none."""
        return [[] if dim == -1 else [dim] for dim in self.dims_mapping]

    def is_annotated(self, name: str) -> bool:
        """Whether a field was said, and not inferred."""
        return self.annotated.get(name, False)

    def mark_annotated(self, name: str) -> None:
        """Note that a field was said."""
        self.annotated[name] = True

    def clear_annotated(self) -> None:
        """Note that no field was said."""
        self.annotated = {}

    @property
    def placements(self) -> list[Placement]:
        """For each dimension of the mesh what ``shard_tensor`` takes."""
        mapping = self.dims_mapping
        return [Shard(mapping.index(d)) if d in mapping else Replicate() for d in range(self.process_mesh.ndim)]

    def __repr__(self) -> str:
        return f"DistAttr(mesh={self.process_mesh!r}, sharding_specs={self.sharding_specs})"

"""Process meshes: ranks laid out on named axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argosy_phi_ops.context import context


class ProcessMesh:
    """An n-dimensional grid of process ranks with a name for each dimension. Immutable.

    >>> mesh = ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["dp", "mp"])
    >>> mesh.shape, mesh.get_dim_size("mp"), mesh[:, 1].process_ids
    ([2, 3], 3, [1, 4])

    Meshes are equal when they lay the same ranks out in the same shape; names do not matter for that.
    """

    __slots__ = ("_dim_names", "_hash", "_key", "_mesh", "_where")

    def __init__(
        self,
        mesh: ArrayLike | None = None,
        dim_names: Sequence[str] | None = None,
        shape: Sequence[int] | None = None,
        process_ids: Sequence[int] | None = None,
    ) -> None:
        """Take the ranks as nested lists or an array, or as ``process_ids`` in row-major order of ``shape``.

        Names default to d0, d1, ... Raises ValueError for ranks that are negative, repeated or no integers,
        for a mesh without ranks, and for names that are repeated or do not match the dimensions.
        """
        self._mesh = _as_ranks(mesh, shape, process_ids)
        self._dim_names = _as_names(dim_names, self._mesh.ndim)
        self._where = dict(zip(self._mesh.reshape(-1).tolist(), np.ndindex(self._mesh.shape), strict=True))
        self._key = (self._mesh.shape, tuple(self._where))
        self._hash = hash(self._key)

    @property
    def mesh(self) -> NDArray[np.int64]:
        """The ranks as a read-only array."""
        return self._mesh

    @property
    def shape(self) -> list[int]:
        """The size of each dimension."""
        return list(self._mesh.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._mesh.ndim

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._mesh.size

    def empty(self) -> bool:
        """False: a mesh has ranks."""
        return False

    @property
    def process_ids(self) -> list[int]:
        """The ranks in row-major order."""
        return list(self._where)

    @property
    def dim_names(self) -> list[str]:
        """The name of each dimension."""
        return list(self._dim_names)

    @property
    def unique_id(self) -> int:
        """A number that meshes of one shape and the same ranks have in common."""
        return hash((*self.shape, *self.process_ids))

    def get_dim_size(self, dim: str | int) -> int:
        """Return the size of a dimension, by name or number. Raises ValueError for an unknown one."""
        return int(self._mesh.shape[self._axis(dim)])

    dim_size = get_dim_size

    def get_mesh_with_dim(self, dim_name: str, index: int | None = None) -> ProcessMesh:
        """Return the mesh with the named dimension moved to the front, or its part ``index`` along that
        dimension.

        Raises ValueError for an unknown name and IndexError for an index outside the dimension.
        """
        axis = self._axis(dim_name)
        moved = np.moveaxis(self._mesh, axis, 0)
        others = [name for name in self._dim_names if name != dim_name]
        if index is None:
            return ProcessMesh(moved, [dim_name, *others])
        if not -moved.shape[0] <= index < moved.shape[0]:
            raise IndexError(f"index {index} is outside dimension {dim_name!r} of size {moved.shape[0]} of {self!r}")
        return ProcessMesh(moved[index], others) if others else ProcessMesh([moved[index]])

    def coordinate(self, process_id: int) -> tuple[int, ...]:
        """Return where a rank stands on the mesh. Raises ValueError if it is not part of it."""
        found = self._where.get(process_id)
        if found is None:
            raise ValueError(f"rank {process_id} is not part of {self!r}")
        return found

    def get_rank_by_dim_and_process_id(self, dim: str | int, process_id: int) -> int:
        """Return a rank's coordinate on a dimension, by name or number, or -1 if it is not part of the mesh."""
        axis = self._axis(dim)
        return self.coordinate(process_id)[axis] if self.contains(process_id) else -1

    def get_submesh_with_dim(self, dim_name: str, process_id: int | None = None) -> ProcessMesh | None:
        """Return the line of ranks along the named dimension that goes through ``process_id``, by default this rank;
        None if that one is not part of the mesh.
        """
        axis = self._axis(dim_name)
        if process_id is None:
            process_id = context().rank
            if not self.contains(process_id):
                return None
        where = self.coordinate(process_id)
        line = self._mesh[tuple(slice(None) if i == axis else c for i, c in enumerate(where))]
        return ProcessMesh(line, [dim_name])

    def get_group(self, dim_name: str | None = None) -> Any:
        """Return the ``argosy.distributed`` group of this rank's line along the named dimension, the only one if
        there is but one. Every rank of the job calls; those outside the mesh get the first line's, as no members.

        Raises ValueError for an unknown name, or none where there are several dimensions, and RuntimeError without
        ``argosy.distributed``.
        """
        if dim_name is None and self.ndim > 1:
            raise ValueError(f"get_group: name one of the dimensions {self._dim_names} of {self!r}")
        if _maker is None:
            raise RuntimeError("ProcessMesh.get_group gives groups of argosy.distributed: import it first")
        name = self._dim_names[0] if dim_name is None else dim_name
        rank = context().rank
        return _maker(self, self.get_submesh_with_dim(name, rank if self.contains(rank) else self.process_ids[0]))

    def contains(self, process_id: int) -> bool:
        """Say whether a rank is part of the mesh."""
        return process_id in self._where

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> ProcessMesh:
        """Return a part of the mesh: integers drop their dimension, slices keep it; a single rank
        is a 1-D mesh.
        """
        items = index if isinstance(index, tuple) else (index,)
        if len(items) > self.ndim:
            raise IndexError(f"{len(items)} indices for the {self.ndim} dimensions of {self!r}")
        kept = [name for name, item in zip(self._dim_names, items, strict=False) if isinstance(item, slice)]
        names = kept + self._dim_names[len(items) :]
        part = self._mesh[items]
        return ProcessMesh(part, names) if names else ProcessMesh([int(part)])

    def __contains__(self, process_id: object) -> bool:
        return isinstance(process_id, int) and self.contains(process_id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProcessMesh):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"ProcessMesh({self._mesh.tolist()}, dim_names={self._dim_names})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessMesh, (self._mesh.tolist(), self._dim_names)

    def _axis(self, dim_name: str | int) -> int:
        if isinstance(dim_name, int):
            if not 0 <= dim_name < self.ndim:
                raise ValueError(f"dimension {dim_name} is not one of the {self.ndim} of {self!r}")
            return dim_name
        if dim_name not in self._dim_names:
            raise ValueError(f"dimension {dim_name!r} is not one of {self._dim_names}")
        return self._dim_names.index(dim_name)


_maker: Callable[[ProcessMesh, Any], Any] | None = None


def set_group_maker(make: Callable[[ProcessMesh, Any], Any]) -> None:
    """Let ``make(mesh, line)`` give the groups of :meth:`ProcessMesh.get_group`: ``argosy.distributed`` calls this."""
    global _maker
    _maker = make


def _as_ranks(
    mesh: ArrayLike | None, shape: Sequence[int] | None, process_ids: Sequence[int] | None
) -> NDArray[np.int64]:
    given = np.asarray(mesh if mesh is not None else process_ids)
    if mesh is None:
        if shape is None or process_ids is None:
            raise ValueError("ProcessMesh needs the ranks: as mesh, or as shape and process_ids")
        if given.size != np.prod(shape):
            raise ValueError(f"ProcessMesh: {given.size} process_ids do not fill shape {list(shape)}")
        given = given.reshape(tuple(shape))
    if given.dtype.kind not in "iu" or given.ndim == 0 or given.size == 0:
        raise ValueError(f"ProcessMesh needs ranks as nested lists of integers, got {mesh!r}")
    _check_ranks(given)
    ranks = given.astype(np.int64)
    ranks.flags.writeable = False
    return ranks


def _check_ranks(ranks: NDArray[Any]) -> None:
    if (ranks < 0).any():
        raise ValueError(f"ProcessMesh: rank {ranks.min()} is negative")
    unique, counts = np.unique(ranks, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"ProcessMesh: ranks {unique[counts > 1].tolist()} appear more than once in {ranks.tolist()}")


def _as_names(dim_names: Sequence[str] | None, ndim: int) -> list[str]:
    names = [f"d{i}" for i in range(ndim)] if dim_names is None else list(dim_names)
    if len(names) != ndim:
        raise ValueError(f"ProcessMesh: {len(names)} dim_names {names} for {ndim} dimensions")
    if len(set(names)) != len(names):
        raise ValueError(f"ProcessMesh: dim_names {names} must differ from each other")
    return names

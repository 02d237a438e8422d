"""``shard_dataloader``: batches as distributed tensors, split along a mesh dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from argosy.distributed.semi_auto import dtensor_from_local, shard_tensor
from argosy_autoparallel import Placement, ProcessMesh, Replicate, Shard
from argosy_tensorcore.tensor import Tensor

__all__ = ["ShardDataloader", "shard_dataloader"]


class ShardDataloader:
    """Iterates over a loader; its tensors come distributed. See :func:`shard_dataloader`."""

    def __init__(
        self,
        dataloader: Any,
        meshes: Sequence[ProcessMesh],
        shard_dims: Sequence[str | int | None],
        input_keys: Sequence[str] | None,
        is_dataset_splitted: bool,
    ) -> None:
        self.dataloader = dataloader
        self._meshes, self._dims = list(meshes), list(shard_dims)
        self._keys = None if input_keys is None else list(input_keys)
        self._make = dtensor_from_local if is_dataset_splitted else shard_tensor

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        """One batch after the other."""
        for batch in self.dataloader:
            yield self._batch(batch)

    def _batch(self, batch: Any) -> Any:
        if isinstance(batch, dict):
            keys = self._keys or list(batch)
            unknown = [key for key in keys if key not in batch]
            if unknown:
                raise ValueError(f"shard_dataloader: input_keys {unknown} are not in the batch {list(batch)}")
            return {key: self._entry(keys.index(key), value) if key in keys else value for key, value in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)(self._entry(i, value) for i, value in enumerate(batch))
        return self._entry(0, batch)

    def _entry(self, position: int, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._entry(position, item) for item in value)
        if type(value) is not Tensor:
            return value
        mesh = _pick(self._meshes, position, "meshes")
        return self._make(value, mesh, _placements(mesh, _pick(self._dims, position, "shard_dims")))


def shard_dataloader(
    dataloader: Any,
    meshes: ProcessMesh | Sequence[ProcessMesh],
    shard_dims: str | int | Sequence[str | int | None] | None = None,
    input_keys: Sequence[str] | None = None,
    is_dataset_splitted: bool = False,
) -> ShardDataloader:
    """Batches of ``dataloader`` as distributed tensors, split along their first axis.

    meshes: one for all entries of a batch, or one for each, in their order (that of ``input_keys`` where batches are
    dicts); shard_dims: likewise the mesh dimension, by name or number, along which entries are split (None: not).
    Every rank reads the same whole batches, in which a seed must make the data equal; with ``is_dataset_splitted`` each
    reads its own part. Raises TypeError and ValueError for meshes and dimensions that do not fit.
    """
    chosen = [meshes] if isinstance(meshes, ProcessMesh) else list(meshes)
    if not chosen or not all(isinstance(mesh, ProcessMesh) for mesh in chosen):
        raise TypeError(f"shard_dataloader takes a ProcessMesh or a list of them, not {meshes!r}")
    dims = [shard_dims] if shard_dims is None or isinstance(shard_dims, (str, int)) else list(shard_dims)
    for i in range(max(len(chosen), len(dims))):
        _placements(_pick(chosen, i, "meshes"), _pick(dims, i, "shard_dims"))
    return ShardDataloader(dataloader, chosen, dims, input_keys, is_dataset_splitted)


def _pick(items: Sequence[Any], position: int, what: str) -> Any:
    if len(items) == 1:
        return items[0]
    if position >= len(items):
        raise ValueError(f"shard_dataloader: entry {position} of a batch, but {len(items)} {what}; one, or one each")
    return items[position]


def _placements(mesh: ProcessMesh, dim: str | int | None) -> list[Placement]:
    names = mesh.dim_names
    if (isinstance(dim, str) and dim not in names) or (isinstance(dim, int) and not 0 <= dim < mesh.ndim):
        raise ValueError(f"shard_dataloader: {dim!r} is not a dimension of {mesh!r}")
    at = names.index(dim) if isinstance(dim, str) else dim
    return [Shard(0) if i == at else Replicate() for i in range(mesh.ndim)]

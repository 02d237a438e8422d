"""``shard_dataloader``: batches as distributed tensors, split along a mesh dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from argosy.distributed.environment import environment
from argosy.distributed.local_parts import dtensor_from_local
from argosy.distributed.semi_auto import shard_tensor
from argosy.distributed.share_reading import Rows, ShareReader, can_read_shares, common_share
from argosy.io.sampler import DistributedBatchSampler
from argosy_autoparallel import Placement, ProcessMesh, Replicate, Shard
from argosy_autoparallel.api import dtensor_from_part
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = ["ShardDataloader", "shard_dataloader"]

Dim = str | int | None


class ShardDataloader:
    """Iterates over a loader; its tensors come distributed. See :func:`shard_dataloader`."""

    def __init__(
        self,
        dataloader: Any,
        meshes: Sequence[Any],
        shard_dims: Sequence[Any],
        input_keys: Sequence[str] | None,
        is_dataset_splitted: bool,
        dense_tensor_idx: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.dataloader = dataloader
        self._meshes, self._dims = list(meshes), list(shard_dims)
        self._keys = None if input_keys is None else list(input_keys)
        self._ordinary = dense_tensor_idx
        own_sampler = isinstance(getattr(dataloader, "batch_sampler", None), DistributedBatchSampler)
        self._make: Any = dtensor_from_local if is_dataset_splitted or own_sampler else shard_tensor
        self._reader: ShareReader | None = None

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        """One batch after the other."""
        environment()
        reader = self._share_reader()
        if reader is None:
            for batch in self.dataloader:
                yield self._batch(batch, self._make)
        else:
            for batch, rows in reader:
                yield self._batch(batch, partial(_from_rows, rows))

    def __call__(self) -> Iterator[Any]:
        """The same as iterating."""
        return iter(self)

    def _share_reader(self) -> ShareReader | None:
        """What reads this rank's rows alone; None where every rank must read the whole batch, or has its own."""
        if self._make is not shard_tensor or self._ordinary is not None or not can_read_shares(self.dataloader):
            return None
        if self._reader is None:
            laid = [(mesh, _placements(mesh, dim)) for mesh, dim in _pairs(self._meshes, self._dims)]
            share = common_share(laid, context().rank)
            self._reader = None if share is None else ShareReader(self.dataloader, share)
        return self._reader

    def _batch(self, batch: Any, make: Any) -> Any:
        if isinstance(batch, dict):
            keys = self._keys or list(batch)
            unknown = [key for key in keys if key not in batch]
            if unknown:
                raise ValueError(f"shard_dataloader: input_keys {unknown} are not in the batch {list(batch)}")
            return {key: self._entry(i, batch[key], make) for i, key in enumerate(keys)}
        if isinstance(batch, (list, tuple)):
            return type(batch)(self._entry(i, value, make) for i, value in enumerate(batch))
        return self._entry(0, batch, make)

    def _entry(self, position: int, value: Any, make: Any) -> Any:
        mesh, dim = _pick(self._meshes, position, "meshes"), _pick(self._dims, position, "shard_dims")
        ordinary = () if self._ordinary is None else self._ordinary[position]
        if not isinstance(value, (list, tuple)):
            return value if ordinary else _lay_out(value, mesh, dim, make)
        return type(value)(
            item if j in ordinary else _lay_out(item, _pick_part(mesh, j), _pick_part(dim, j), make)
            for j, item in enumerate(value)
        )


def shard_dataloader(
    dataloader: Any,
    meshes: ProcessMesh | Sequence[Any],
    input_keys: Sequence[str] | None = None,
    shard_dims: Dim | Sequence[Any] = None,
    is_dataset_splitted: bool = False,
    dense_tensor_idx: Sequence[Sequence[int]] | None = None,
) -> ShardDataloader:
    """Batches of ``dataloader`` as distributed tensors, split along a mesh dimension.

    meshes: one for all entries of a batch, or one for each, in their order; for an entry that is a list, one or a list.
    input_keys: which entries of batches that are dicts are taken, and their order. shard_dims: as meshes, the mesh
    dimension, by name or number, along which entries are split (None: not). dense_tensor_idx: of each entry that is a
    list, the positions that stay ordinary tensors.

    The batches are those of one process; samplers that draw need the same seed everywhere. Of a DataLoader with the
    default collation a rank reads its own rows alone; of other loaders every rank reads whole batches, which must be
    equal. With ``is_dataset_splitted``, or a DistributedBatchSampler, each rank's loader gives its own part already.
    Raises TypeError and ValueError for meshes and dimensions that do not fit.
    """
    chosen = [meshes] if isinstance(meshes, ProcessMesh) else list(meshes)
    dims = [shard_dims] if shard_dims is None or isinstance(shard_dims, (str, int)) else list(shard_dims)
    _check_meshes(chosen)
    for mesh, dim in _pairs(chosen, dims):
        _placements(mesh, dim)
    return ShardDataloader(dataloader, chosen, dims, input_keys, is_dataset_splitted, dense_tensor_idx)


def _check_meshes(meshes: Sequence[Any]) -> None:
    flat = [m for each in meshes for m in (each if isinstance(each, (list, tuple)) else (each,))]
    if not flat or not all(isinstance(mesh, ProcessMesh) for mesh in flat):
        raise TypeError(f"shard_dataloader takes a ProcessMesh or a list of them, not {meshes!r}")


def _pairs(meshes: Sequence[Any], dims: Sequence[Any]) -> Iterator[tuple[ProcessMesh, Dim]]:
    """Every mesh with the dimension that goes with it."""
    for i in range(max(len(meshes), len(dims))):
        mesh, dim = _pick(meshes, i, "meshes"), _pick(dims, i, "shard_dims")
        inner = max(len(x) if isinstance(x, (list, tuple)) else 1 for x in (mesh, dim))
        for j in range(inner):
            yield _pick_part(mesh, j), _pick_part(dim, j)


def _pick(items: Sequence[Any], position: int, what: str) -> Any:
    if len(items) == 1:
        return items[0]
    if position >= len(items):
        raise ValueError(f"shard_dataloader: entry {position} of a batch, but {len(items)} {what}; one, or one each")
    return items[position]


def _pick_part(item: Any, position: int) -> Any:
    return _pick(item, position, "of a list's parts") if isinstance(item, (list, tuple)) else item


def _lay_out(value: Any, mesh: ProcessMesh, dim: Dim, make: Any) -> Any:
    return make(value, mesh, _placements(mesh, dim)) if type(value) is Tensor else value


def _from_rows(rows: Rows, value: Any, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The global tensor whose rows on this rank are those that were read."""
    shape = [rows.total, *value.shape[1:]]
    return dtensor_from_part(value[: rows.held], shape, mesh, placements)


def _placements(mesh: ProcessMesh, dim: Dim) -> list[Placement]:
    names = mesh.dim_names
    if (isinstance(dim, str) and dim not in names) or (isinstance(dim, int) and not 0 <= dim < mesh.ndim):
        raise ValueError(f"shard_dataloader: {dim!r} is not a dimension of {mesh!r}")
    at = names.index(dim) if isinstance(dim, str) else dim
    return [Shard(0) if i == at else Replicate() for i in range(mesh.ndim)]

"""The functions of semi-automatic parallelism, with the names and semantics of ``paddle.distributed``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_autoparallel.dist_tensor import ShardedArray, local_value, replicated_payload
from argosy_autoparallel.global_shape import whole_shape
from argosy_autoparallel.groups import ensure_groups, rank
from argosy_autoparallel.interpreter import SpmdLayer
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Placement, Replicate
from argosy_autoparallel.presence import serve
from argosy_autoparallel.redistribution import redistribute, redistribute_op
from argosy_autoparallel.tensor_layout import WHOLE, Layout
from argosy_phi_ops.eager.dispatch import bind
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "dtensor_from_fn", "dtensor_from_local", "dtensor_from_part", "dtensor_to_local", "reshard", "shard_tensor",
    "unshard_dtensor",
]  # fmt: skip

serve(SpmdLayer())


def shard_tensor(
    data: Any,
    mesh: ProcessMesh,
    placements: Sequence[Placement] | None = None,
    dtype: object = None,
    place: object = None,
    stop_gradient: bool | None = None,
) -> Tensor:
    """A distributed tensor of the global value ``data`` (a tensor, an array, nested lists), which every rank gives.

    A parameter stays one: its payload is replaced, so that whoever holds it sees the distributed tensor. Other leaves
    give a new leaf; the result of an operator that wants gradients passes them on. Raises ``ValueError`` for placements
    that fit neither mesh nor tensor and for ranks that were not launched.
    """
    tensor = data if type(data) is Tensor else Tensor(data, dtype, place)
    if type(data) is Tensor and dtype is not None:
        tensor = tensor.astype(dtype)
    layout = Layout.from_placements(mesh, placements, tensor.ndim)
    ensure_groups(mesh)
    if tensor.payload.is_traced or tensor._node is not None:
        return _with_gradient(redistribute(tensor, layout), stop_gradient)
    payload = tensor.payload
    if type(payload) is not ShardedArray:
        payload = replicated_payload(payload.to_host(), mesh)
    laid = payload.relayout(layout)
    if tensor.is_parameter:
        tensor.payload = laid
        return _with_gradient(tensor, stop_gradient)
    made = Tensor._wrap(laid, tensor.stop_gradient if stop_gradient is None else stop_gradient)
    made._name, made.persistable = tensor._name, tensor.persistable
    return made


def empty_payload(
    shape: Sequence[int], dtype: DType, mesh: ProcessMesh, placements: Sequence[Placement] | None
) -> ShardedArray:
    """The payload of a distributed tensor whose parts nobody has written yet. Terms of a reduction are not laid out:
    where ``placements`` ask for some, each rank has all of the tensor. Raises as :func:`shard_tensor` does.
    """
    layout = Layout.from_placements(mesh, placements, len(shape))
    layout = Layout(mesh, [Replicate() if p.is_partial() else p for p in layout.placements])
    ensure_groups(mesh)
    if not mesh.contains(rank()):
        return ShardedArray(_empty_part(), shape, dtype, layout)
    part = layout.local_slice(tuple(shape), rank()).shape
    return ShardedArray(StridedArray.empty(part, dtype), shape, dtype, layout)


def _with_gradient(tensor: Tensor, stop_gradient: bool | None) -> Tensor:
    if stop_gradient is not None:
        tensor.stop_gradient = stop_gradient
    return tensor


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The tensor in another layout, on its mesh or another one; differentiable. Every rank of both meshes calls.

    Raises ``TypeError`` for what is not a tensor, ``ValueError`` as :func:`shard_tensor` does.
    """
    if type(dist_tensor) is not Tensor:
        raise TypeError(f"reshard takes a distributed tensor, got {type(dist_tensor).__name__}")
    layout = Layout.from_placements(mesh, placements, dist_tensor.ndim)
    ensure_groups(mesh)
    return redistribute(dist_tensor, layout)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The global value as an ordinary tensor on every rank of the mesh; differentiable.

    In a captured function the mesh must have all ranks (ValueError).
    """
    if dist_tensor.payload.is_traced:
        whole: Tensor = bind(redistribute_op, (dist_tensor,), {"target": WHOLE})
        return whole
    if type(dist_tensor.payload) is not ShardedArray:
        return dist_tensor
    laid = redistribute(dist_tensor, Layout.replicate(dist_tensor.payload.mesh))
    made = Tensor._wrap(laid.payload.local, laid.stop_gradient)
    made._node, made._slot = laid._node, laid._slot
    return made


def dtensor_from_local(local_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The distributed tensor whose part on this rank is ``local_tensor``. Parts may be uneven, as ``placements`` cut a
    tensor: ranks tell each other how large theirs are (:func:`whole_shape`). :func:`dtensor_from_part` is told the
    shape.

    No gradient flows back to ``local_tensor``: the result is a leaf. Raises ``ValueError`` for parts that do not fit
    together.
    """
    layout = Layout.from_placements(mesh, placements, local_tensor.ndim)
    ensure_groups(mesh)
    shape = whole_shape(local_tensor.payload.shape, layout)
    payload = local_tensor.payload
    local = StridedArray.from_array(np.array(payload.to_host())) if mesh.contains(rank()) else _empty_part()
    return Tensor._wrap(ShardedArray(local, shape, payload.dtype, layout), local_tensor.stop_gradient)


def dtensor_from_part(
    local_tensor: Tensor, shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement]
) -> Tensor:
    """The distributed tensor of global ``shape`` whose part on this rank is ``local_tensor``, as ``placements`` cut it,
    unevenly too. What a rank outside the mesh gives is not looked at but for the dtype.

    Raises ``ValueError`` for a part of another shape.
    """
    layout = Layout.from_placements(mesh, placements, len(shape))
    ensure_groups(mesh)
    payload = local_tensor.payload
    if not mesh.contains(rank()):
        return Tensor._wrap(ShardedArray(_empty_part(), shape, payload.dtype, layout), local_tensor.stop_gradient)
    expected = tuple(layout.local_slice(tuple(shape), rank()).shape)
    if tuple(payload.shape) != expected:
        raise ValueError(
            f"dtensor_from_part: rank {rank()} holds {list(expected)} of {list(shape)} under {layout!r}, "
            f"not {list(payload.shape)}"
        )
    local = StridedArray.from_array(np.array(payload.to_host()))
    return Tensor._wrap(ShardedArray(local, shape, payload.dtype, layout), local_tensor.stop_gradient)


def _empty_part() -> StridedArray:
    return StridedArray(np.zeros(0, np.bool_))


def dtensor_to_local(
    dist_tensor: Tensor, mesh: ProcessMesh | None = None, placements: Sequence[Placement] | None = None
) -> Tensor:
    """This rank's part, sharing memory; in the given layout, where one is given. No gradient flows through."""
    payload = dist_tensor.payload
    if type(payload) is ShardedArray and (mesh is not None or placements is not None):
        dist_tensor = reshard(dist_tensor, mesh or payload.mesh, placements or [Replicate()])
    return local_value(dist_tensor).detach()


def dtensor_from_fn(
    fn: Callable[..., Tensor], mesh: ProcessMesh, placements: Sequence[Placement], *args: Any, **kwargs: Any
) -> Tensor:
    """The distributed tensor of what ``fn(*args, **kwargs)`` gives: the same global value on any mesh, since random
    numbers depend on their global index alone."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)

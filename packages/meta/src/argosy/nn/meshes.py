"""Numbers that belong together and lie on several process meshes, without loading what distributed tensors need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy_phi_ops.context import context

__all__ = ["first_mesh", "full_mesh", "mesh_of", "on_mesh", "replicate_on", "whole_of"]


def mesh_of(x: Any) -> Any:
    """Where a tensor lies; None for ordinary ones."""
    return getattr(x.payload, "mesh", None)


def first_mesh(tensors: Iterable[Any]) -> Any:
    """That of the first distributed tensor; None without one."""
    return next((mesh for mesh in map(mesh_of, tensors) if mesh is not None), None)


def on_mesh(mesh: Any, x: Any) -> Any:
    """``x`` on ``mesh``, whole on each of its ranks; what is on no mesh, or on this one, stays as it is. The ranks of
    both meshes call."""
    if mesh is None or mesh_of(x) is None or mesh_of(x) == mesh:
        return x
    from argosy_autoparallel.api import reshard

    return reshard(x, mesh, [])


def full_mesh(mesh: Any) -> Any:
    """``mesh`` where it has all ranks, or is None; else one that has them."""
    if mesh is None or mesh.size == context().size:
        return mesh
    from argosy_autoparallel import ProcessMesh

    return ProcessMesh(list(range(context().size)))


def replicate_on(mesh: Any, x: Any) -> Any:
    """An ordinary tensor, whole on each rank of ``mesh``; itself where that is None."""
    if mesh is None:
        return x
    from argosy_autoparallel.api import shard_tensor
    from argosy_autoparallel.placement import Replicate

    return shard_tensor(x, mesh, [Replicate()] * mesh.ndim)


def whole_of(x: Any) -> Any:
    """A tensor as an ordinary one. Raises ValueError in a captured function where its mesh has not all ranks."""
    if mesh_of(x) is None:
        return x
    from argosy_autoparallel.api import unshard_dtensor

    return unshard_dtensor(x)

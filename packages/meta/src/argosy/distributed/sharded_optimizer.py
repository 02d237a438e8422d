"""``shard_optimizer``: where optimizer states live on the mesh, and ZeRO's three stages (Rajbhandari et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from argosy.distributed.semi_auto import get_mesh, reshard, shard_tensor
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel import Placement, ProcessMesh, Shard
from argosy_tensorcore.tensor import Tensor

__all__ = ["ShardingStage1", "ShardingStage2", "ShardingStage3", "shard_optimizer"]

OptimizerType = TypeVar("OptimizerType", bound=Optimizer)

ShardFn = Callable[[str, Tensor, Tensor], Tensor]


class ShardingStage1:
    """Optimizer states are split along a mesh dimension, on top of how their parameters are.

    ``sharding_mesh_dim`` is the dimension's name or number (default: the first); ``mesh`` is that of parameters which
    are not distributed yet (default: ``get_mesh()``).
    """

    def __init__(self, sharding_mesh_dim: str | int | None = None, mesh: ProcessMesh | None = None) -> None:
        self.mesh_dim = 0 if sharding_mesh_dim is None else sharding_mesh_dim
        self.mesh = mesh
        if mesh is not None:
            _position(self.mesh_dim, mesh)

    def __call__(self, key: str, param: Tensor, accumulator: Tensor) -> Tensor:
        """The accumulator ``key`` of ``param``, split along the mesh dimension; scalars stay whole."""
        if list(accumulator.shape) != list(param.shape):
            return accumulator
        mesh: Any = param.process_mesh
        if mesh is None:
            return accumulator
        return shard_tensor(accumulator, mesh, self.split(param))

    def split(self, param: Any) -> list[Placement]:
        """The parameter's placements with the mesh dimension splitting the first axis that nothing splits yet."""
        return self.split_shape(param.shape, param.process_mesh, param.placements)

    def split_shape(self, shape: Sequence[int], mesh: ProcessMesh, given: Sequence[Placement]) -> list[Placement]:
        """:meth:`split` of a parameter of ``shape`` with the placements ``given`` on ``mesh``."""
        placements, dim = list(given), _position(self.mesh_dim, mesh)
        taken = {p.get_dim() for p in placements if isinstance(p, Shard)}
        free = [axis for axis, size in enumerate(shape) if axis not in taken and size >= mesh.shape[dim]]
        if placements[dim].is_replicated() and free:
            placements[dim] = Shard(free[0])
        return placements

    def place(self, param: Any) -> None:
        """Put a parameter that is not distributed on the mesh, whole. Raises ValueError for a parameter on a mesh
        without the dimension.
        """
        mesh = self.mesh or get_mesh()
        if param.process_mesh is None and mesh is not None:
            shard_tensor(param, mesh, [])
        if param.process_mesh is not None:
            _position(self.mesh_dim, param.process_mesh)


class ShardingStage2(ShardingStage1):
    """Gradients are split as well. They are so in the update of stage 1 already, since that moves fewer bytes, and a
    compiled step keeps none. In a pipeline, which adds up those of its microbatches, each backward pass scatters its
    sums here, so that a rank keeps its part of them alone; at stage 1 the update does, once.
    """


class ShardingStage3(ShardingStage2):
    """As stage 2, and parameters are split too: they are gathered where they are used, in compiled steps again by the
    backward pass."""

    def place(self, param: Any) -> None:
        """Split the parameter."""
        super().place(param)
        if param.process_mesh is not None:
            shard_tensor(param, param.process_mesh, self.split(param))


def shard_optimizer(
    optimizer: OptimizerType, shard_fn: ShardFn | None = None, gradient_accumulation_steps: int = 1
) -> OptimizerType:
    """Let ``shard_fn(name, parameter, accumulator)`` place each state of ``optimizer``; returns the optimizer.

    Without it states are laid out like their parameters, which is so for every optimizer anyway.
    gradient_accumulation_steps: of how many batches ``distributed.to_static`` merges the gradients (their mean) for one
    update; an eager loop calls ``step()`` when it wants to. Raises TypeError for what is no optimizer, ValueError for
    no steps and for a stage along a dimension that the mesh of a parameter does not have.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"shard_optimizer takes an Optimizer, not {type(optimizer).__name__}")
    if type(gradient_accumulation_steps) is not int or gradient_accumulation_steps < 1:
        raise ValueError(f"gradient_accumulation_steps is a number from 1, not {gradient_accumulation_steps!r}")
    optimizer._merged_steps = gradient_accumulation_steps
    optimizer._placing, optimizer._states_first = shard_fn, True
    if isinstance(shard_fn, ShardingStage1):
        for parameter in optimizer._parameter_list:
            shard_fn.place(parameter)
        optimizer._lay_gradient = lambda p, g: reshard(g, p.process_mesh, shard_fn.split(p))
    return optimizer


def _position(dim: str | int, mesh: ProcessMesh) -> int:
    names = mesh.dim_names
    if dim in names:
        return names.index(dim)
    if not isinstance(dim, int) or not 0 <= dim < mesh.ndim:
        raise ValueError(f"sharding_mesh_dim {dim!r} is not a dimension of {mesh!r}")
    return dim

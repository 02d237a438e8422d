"""Semi-automatic parallelism: tensors annotated with meshes and placements. The engine is ``argosy_autoparallel``.

Every rank calls these functions alike. The first of them meets the other ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from argosy.distributed.environment import environment
from argosy.nn.layer import Layer
from argosy.nn.lazy import initialize_in
from argosy_autoparallel import Placement, ProcessMesh, Replicate, api
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "dtensor_from_fn", "get_mesh", "reshard", "set_mesh", "shard_layer", "shard_tensor", "unshard_dtensor",
]  # fmt: skip

LayerType = TypeVar("LayerType", bound=Layer)

unshard_dtensor = api.unshard_dtensor


def shard_tensor(
    data: Any,
    mesh: ProcessMesh,
    placements: Sequence[Placement],
    dtype: object = None,
    place: object = None,
    stop_gradient: bool | None = None,
) -> Tensor:
    """A distributed tensor of the global value ``data``, which every rank gives: a tensor, an array, nested lists.

    A parameter stays one, now distributed; of one that waits to be filled, made within ``LazyGuard``, each rank fills
    its own part, with the values of one process. Raises ValueError for placements that fit neither mesh nor tensor, and
    for a mesh with ranks that were not launched.
    """
    environment()
    if type(data) is Tensor:
        initialize_in(data, lambda: api.empty_payload(data.shape, data.payload.dtype, mesh, placements))
    return api.shard_tensor(data, mesh, placements, dtype, place, stop_gradient)


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The tensor in another layout, on its mesh or another one; differentiable."""
    environment()
    return api.reshard(dist_tensor, mesh, placements)


def dtensor_from_fn(
    fn: Callable[..., Tensor], mesh: ProcessMesh, placements: Sequence[Placement], *args: Any, **kwargs: Any
) -> Tensor:
    """The distributed tensor of what ``fn(*args, **kwargs)`` gives: the same global value on any mesh."""
    environment()
    return api.dtensor_from_fn(fn, mesh, placements, *args, **kwargs)


def set_mesh(mesh: ProcessMesh) -> None:
    """Make ``mesh`` this rank's default mesh."""
    if not isinstance(mesh, ProcessMesh):
        raise TypeError(f"set_mesh takes a ProcessMesh, not {type(mesh).__name__}")
    context().mesh = mesh


def get_mesh() -> ProcessMesh | None:
    """The mesh that :func:`set_mesh` was given; None before."""
    mesh = context().mesh
    return mesh if isinstance(mesh, ProcessMesh) else None


def shard_layer(
    layer: LayerType,
    process_mesh: ProcessMesh,
    shard_fn: Callable[[str, Layer, ProcessMesh], None] | None = None,
    input_fn: Callable[[Any, ProcessMesh], Any] | None = None,
    output_fn: Callable[[Any, ProcessMesh], Any] | None = None,
) -> LayerType:
    """Put a layer's parameters and buffers on a mesh; returns the layer.

    ``shard_fn(name, sublayer, mesh)`` places those of each sublayer, the layer's own first; what it leaves alone is
    replicated. ``input_fn(inputs, mesh)`` and ``output_fn(outputs, mesh)`` change what the layer's forward gets (a list
    or tuple: all its arguments) and gives.
    """
    if not isinstance(layer, Layer) or not isinstance(process_mesh, ProcessMesh):
        raise TypeError(
            f"shard_layer takes a Layer and a ProcessMesh, got {type(layer).__name__}, {type(process_mesh).__name__}"
        )
    for name, sublayer in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sublayer, process_mesh)
        replicate_parameters(sublayer, process_mesh)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: _arguments(input_fn(inputs, process_mesh)))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def _arguments(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def replicate_parameters(layer: Layer, mesh: ProcessMesh) -> None:
    """Put those of a layer's own parameters and buffers on ``mesh`` that are on none."""
    everywhere = [Replicate()] * mesh.ndim
    for held in (layer._parameters, layer._buffers):
        for name, tensor in held.items():
            if tensor is not None and tensor.placements is None:
                held[name] = shard_tensor(tensor, mesh, everywhere)

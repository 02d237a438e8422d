"""Distributed tensors and the ranks' own parts of them, both ways, differentiably; functions that work on parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argosy.distributed.environment import environment
from argosy.nn.nesting import flatten, pack_as
from argosy_autograd.pylayer import PyLayer
from argosy_autoparallel import Placement, ProcessMesh, Replicate, api
from argosy_autoparallel.dist_tensor import is_dist, layout_of
from argosy_autoparallel.interpreter import redistribute
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture import active_tracer
from argosy_tensorcore.tensor import Tensor

__all__ = ["dtensor_from_local", "dtensor_to_local", "local_map", "local_part"]


class _FromLocal(PyLayer):
    """A part's gradient is that part of the whole tensor's gradient; of a term of a sum it is all of it."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
        made = api.dtensor_from_local(part, mesh, placements)
        ctx.layout, ctx.part = layout_of(made).cotangent(), part.detach()  # type: ignore[union-attr]
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        laid = g if layout_of(g) == ctx.layout else redistribute(g, ctx.layout)
        made: Tensor = laid._local_value() if laid.payload.is_held else ctx.part.zeros_like()
        return made


class _ToLocal(PyLayer):
    """What arrives for a part is that part of the gradient; of a replicated or partial tensor, all of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gradient: Layout | None = None) -> Tensor:
        layout: Layout = layout_of(x)  # type: ignore[assignment]
        ctx.layout, ctx.shape = gradient or layout.cotangent(), x.shape
        made: Tensor = x._local_value().detach()
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return api.dtensor_from_part(g, ctx.shape, ctx.layout.mesh, ctx.layout.placements)


def dtensor_from_local(local_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The distributed tensor whose part on this rank is ``local_tensor``; parts are equally large everywhere.

    Gradients flow back: each rank gets that of its part. Raises TypeError for a distributed tensor.
    """
    environment()
    _check_eager("dtensor_from_local")
    if is_dist(local_tensor):
        raise TypeError(
            "dtensor_from_local takes this rank's part, an ordinary tensor; got a distributed one: reshard it"
        )
    made: Tensor = _FromLocal.apply(local_tensor, mesh, placements)
    return made


def dtensor_to_local(
    dist_tensor: Tensor, mesh: ProcessMesh | None = None, placements: Sequence[Placement] | None = None
) -> Tensor:
    """This rank's part, sharing memory; in the given layout, where one is given. An ordinary tensor is its own part.

    Gradients flow back: each rank gives that of its part; where all hold the whole tensor they give the same one.
    """
    _check_eager("dtensor_to_local")
    if not is_dist(dist_tensor):
        return dist_tensor
    if mesh is not None or placements is not None:
        target = mesh or dist_tensor.process_mesh
        dist_tensor = api.reshard(dist_tensor, target, placements or [Replicate()] * target.ndim)
    made: Tensor = _ToLocal.apply(dist_tensor)
    return made


def local_part(x: Tensor, gradient: tuple[ProcessMesh, Sequence[Placement]] | None) -> Tensor:
    """This rank's part of ``x``, whose gradient then lies as ``gradient`` says (None: like ``x``)."""
    if gradient is None or not is_dist(x):
        return dtensor_to_local(x)
    _check_eager("LocalLayer")
    made: Tensor = _ToLocal.apply(x, Layout.of(*gradient, x.ndim))
    return made


def _check_eager(name: str) -> None:
    if active_tracer() is not None:
        raise NotImplementedError(
            f"{name} while capturing: a captured program is that of all ranks together and has no parts; use reshard, "
            "or call it outside of to_static"
        )


def local_map(
    func: Callable[..., Any],
    out_placements: Sequence[Sequence[Placement] | None],
    in_placements: Sequence[Sequence[Placement] | None] | None = None,
    process_mesh: ProcessMesh | None = None,
    reshard_inputs: bool = False,
) -> Callable[..., Any]:
    """A function of distributed tensors that runs ``func`` on this rank's parts and puts its results together.

    ``out_placements`` has one entry for each result (None where it is no tensor), ``in_placements`` one for each
    positional argument, nests flattened (None: as it comes). The mesh is by default that of the first distributed
    argument; without one the results stay ordinary. Calls raise ValueError for arguments that lie otherwise than
    ``in_placements`` says, unless ``reshard_inputs`` has them brought there, and for numbers of placements that do
    not fit.
    """
    return partial(_local_call, func, out_placements, in_placements, process_mesh, reshard_inputs)


def _local_call(
    func: Callable[..., Any],
    out_placements: Sequence[Sequence[Placement] | None],
    in_placements: Sequence[Sequence[Placement] | None] | None,
    mesh: ProcessMesh | None,
    reshard_inputs: bool,
    *args: Any,
    **kwargs: Any,
) -> Any:
    given = flatten(list(args))
    wanted = [None] * len(given) if in_placements is None else list(in_placements)
    if len(wanted) != len(given):
        raise ValueError(f"local_map: {len(wanted)} in_placements for {len(given)} arguments")
    spread = [x for x in given if isinstance(x, Tensor) and is_dist(x)]
    if mesh is None and spread:
        mesh = spread[0].process_mesh
    parts = [_part(x, i, w, mesh, reshard_inputs) for i, (x, w) in enumerate(zip(given, wanted, strict=True))]
    result = func(*pack_as(list(args), parts), **kwargs)
    if mesh is None or not spread:
        return result
    single = not isinstance(result, list | tuple | dict)
    made = [result] if single else flatten(result)
    if len(made) != len(out_placements):
        raise ValueError(f"local_map: {len(out_placements)} out_placements for {len(made)} results")
    whole = [_whole(y, i, p, mesh) for i, (y, p) in enumerate(zip(made, out_placements, strict=True))]
    return whole[0] if single else pack_as(result, whole)


def _part(
    x: Any, number: int, wanted: Sequence[Placement] | None, mesh: ProcessMesh | None, reshard_inputs: bool
) -> Any:
    if not isinstance(x, Tensor) or not is_dist(x):
        return x
    if wanted is None:
        return dtensor_to_local(x)
    target = Layout.of(mesh, wanted, x.ndim)  # type: ignore[arg-type]
    if layout_of(x) != target and not reshard_inputs:
        raise ValueError(
            f"local_map: argument {number} lies as {x.placements} on {x.process_mesh!r}, but in_placements want "
            f"{list(target.placements)} on {mesh!r}; reshard it, or give reshard_inputs=True"
        )
    return dtensor_to_local(x, mesh, target.placements)


def _whole(y: Any, number: int, placements: Sequence[Placement] | None, mesh: ProcessMesh) -> Any:
    if isinstance(y, Tensor) and placements is not None:
        return dtensor_from_local(y, mesh, placements)
    if isinstance(y, Tensor) or placements is not None:
        kind = "a tensor without placements" if isinstance(y, Tensor) else f"{type(y).__name__}, not a tensor"
        raise ValueError(
            f"local_map: result {number} is {kind}; out_placements has an entry for each result, None for others"
        )
    return y

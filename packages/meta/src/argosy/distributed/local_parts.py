"""Distributed tensors and the ranks' own parts of them, both ways, differentiably; functions that work on parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argosy.distributed.environment import environment
from argosy.nn.nesting import flatten, pack_as
from argosy_autograd.pylayer import PyLayer
from argosy_autoparallel import Placement, ProcessMesh, api, ensure_groups
from argosy_autoparallel.dist_tensor import is_dist, layout_of
from argosy_autoparallel.global_shape import whole_shape
from argosy_autoparallel.rank_operators import part_of, whole_of
from argosy_autoparallel.redistribution import redistribute
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture.tracer import active_tracer
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
    """The distributed tensor whose part on this rank is ``local_tensor``. Parts may be uneven, as ``placements`` cut a
    tensor: the ranks tell each other how large theirs are, in a captured function when it is captured.

    Gradients flow back: each rank gets that of its part. Raises TypeError for a distributed tensor, ValueError for
    parts that do not fit together.
    """
    environment()
    if is_dist(local_tensor):
        raise TypeError(
            "dtensor_from_local takes this rank's part, an ordinary tensor; got a distributed one: reshard it"
        )
    if active_tracer() is not None:
        layout = Layout.from_placements(mesh, placements, local_tensor.ndim)
        ensure_groups(mesh)
        return whole_of(local_tensor, layout, whole_shape(local_tensor.shape, layout))
    made: Tensor = _FromLocal.apply(local_tensor, mesh, placements)
    return made


def dtensor_to_local(
    dist_tensor: Tensor, mesh: ProcessMesh | None = None, placements: Sequence[Placement] | None = None
) -> Tensor:
    """This rank's part, sharing memory; in the given layout, where one is given. An ordinary tensor is its own part.

    Gradients flow back: each rank gives that of its part; where all hold the whole tensor they give the same one.
    """
    layout = lies(dist_tensor)
    if layout is None:
        return dist_tensor
    if mesh is not None or placements is not None:
        layout = Layout.from_placements(mesh or layout.mesh, placements, dist_tensor.ndim)
    return _part_in(dist_tensor, layout, None)


def local_part(x: Tensor, gradient: tuple[ProcessMesh, Sequence[Placement]] | None) -> Tensor:
    """This rank's part of ``x``, whose gradient then lies as ``gradient`` says (None: like ``x``)."""
    layout = lies(x)
    if layout is None:
        return x
    return _part_in(x, layout, None if gradient is None else Layout.from_placements(*gradient, x.ndim))


def lies(x: Tensor) -> Layout | None:
    """How a tensor lies, traced ones too; None for an ordinary one."""
    return Layout(x.process_mesh, x.placements) if is_dist(x) else None


def _part_in(x: Tensor, layout: Layout, gradient: Layout | None) -> Tensor:
    if active_tracer() is not None:
        return part_of(x, layout, gradient)
    if layout_of(x) != layout:
        x = api.reshard(x, layout.mesh, layout.placements)
    made: Tensor = _ToLocal.apply(x, gradient)
    return made


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
    laid = [lies(x) if isinstance(x, Tensor) else None for x in given]
    spread = [layout for layout in laid if layout is not None]
    if mesh is None and spread:
        mesh = spread[0].mesh
    each = enumerate(zip(given, laid, wanted, strict=True))
    parts = [_part(i, x, layout, placements, mesh, reshard_inputs) for i, (x, layout, placements) in each]
    result = func(*pack_as(list(args), parts), **kwargs)
    if mesh is None or not spread:
        return result
    single = not isinstance(result, list | tuple | dict)
    made = [result] if single else flatten(result)
    if len(made) != len(out_placements):
        raise ValueError(f"local_map: {len(out_placements)} out_placements for {len(made)} results")
    whole = [_global_tensor(y, i, p, mesh) for i, (y, p) in enumerate(zip(made, out_placements, strict=True))]
    return whole[0] if single else pack_as(result, whole)


def _part(
    number: int,
    x: Any,
    layout: Layout | None,
    wanted: Sequence[Placement] | None,
    mesh: ProcessMesh | None,
    reshard_inputs: bool,
) -> Any:
    if layout is None:
        return x
    target = layout if wanted is None else Layout.from_placements(mesh, wanted, x.ndim)  # type: ignore[arg-type]
    if layout != target and not reshard_inputs:
        raise ValueError(
            f"local_map: argument {number} lies as {list(layout.placements)} on {layout.mesh!r}, but in_placements "
            f"want {list(target.placements)} on {mesh!r}; reshard it, or give reshard_inputs=True"
        )
    return _part_in(x, target, None)


def _global_tensor(y: Any, number: int, placements: Sequence[Placement] | None, mesh: ProcessMesh) -> Any:
    if isinstance(y, Tensor) and placements is not None:
        return dtensor_from_local(y, mesh, placements)
    if isinstance(y, Tensor) or placements is not None:
        kind = "a tensor without placements" if isinstance(y, Tensor) else f"{type(y).__name__}, not a tensor"
        raise ValueError(
            f"local_map: result {number} is {kind}; out_placements has an entry for each result, None for others"
        )
    return y

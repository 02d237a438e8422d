"""What a captured program does rank by rank: parts of distributed tensors, and collectives on ordinary ones.

These operators exist in captures alone, where the partitioner makes a rank's program of them; eagerly the same is done
at once (``api``, and whoever calls communicators).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_autoparallel.groups import ensure_groups, rank
from argosy_autoparallel.tensor_layout import Layout, print_layout
from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Operator, operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_phi_ops.ops.random.values import uniform_values
from argosy_tensorcore.tensor import Tensor

__all__ = ["COMMUNICATING", "communicate", "kept_by_dropout", "part_of", "whole_of"]


@operator()
def to_local_op(x: Tensor, layout: str = "", gradient: str = "", shape: tuple = ()) -> Tensor:  # type: ignore[type-arg]
    """This rank's part, of ``shape``, of ``x`` in ``layout``; its gradient is a part of one in ``gradient``."""
    return prim.to_local(prim.relayout(x, target=layout), target=gradient, shape=shape)  # type: ignore[no-any-return]


@operator()
def from_local_op(x: Tensor, layout: str = "", shape: tuple = ()) -> Tensor:  # type: ignore[type-arg]
    """The tensor of ``shape`` in ``layout`` of which every rank has a part."""
    return prim.from_local(x, target=layout, shape=shape)  # type: ignore[no-any-return]


def part_of(x: Tensor, layout: Layout, gradient: Layout | None = None) -> Tensor:
    """This rank's part of the traced ``x`` in ``layout``, an ordinary tensor; differentiable.

    The gradients of the parts make one in ``gradient`` (default: that of ``layout``). Raises ``ValueError`` on a rank
    outside the mesh.
    """
    ensure_groups(layout.mesh)
    if not layout.mesh.contains(rank()):
        raise ValueError(
            f"rank {rank()} is outside of {layout.mesh!r} and has no part; in a captured function the mesh should have "
            "all ranks"
        )
    shape = layout.local_slice(tuple(x.shape), rank()).shape
    target = "" if gradient is None else print_layout(gradient)
    made: Tensor = bind(to_local_op, (x,), {"layout": print_layout(layout), "gradient": target, "shape": shape})
    return made


def whole_of(part: Tensor, layout: Layout, shape: Sequence[int]) -> Tensor:
    """The distributed tensor of ``shape`` of which every rank has a part, traced; differentiable.

    Raises ``ValueError`` for a part of another shape than ``layout`` gives this rank.
    """
    ensure_groups(layout.mesh)
    if layout.mesh.contains(rank()):
        expected = tuple(layout.local_slice(tuple(shape), rank()).shape)
        if tuple(part.shape) != expected:
            raise ValueError(
                f"rank {rank()} holds {list(expected)} of {list(shape)} under {layout!r}, not {list(part.shape)}"
            )
    made: Tensor = bind(from_local_op, (part,), {"layout": print_layout(layout), "shape": tuple(shape)})
    return made


@operator(random=True)
def kept_by_dropout(
    p: float = 0.5, blocks: tuple = (), sizes: tuple = (), whole: tuple = (),  # type: ignore[type-arg]
    rng: Tensor | None = None, counter: int = 0,
) -> Tensor:  # fmt: skip
    """Which elements of blocks of a tensor of shape ``whole`` a dropout of the whole keeps. ``blocks`` are rows of
    places where blocks of ``sizes`` begin: those of a row are joined along the last axis, rows along the one before."""
    assert rng is not None
    rows = [
        prim.concat(
            *(prim.ge(uniform_values(rng, counter, sizes, "float32", start, whole), float(p)) for start in row),
            axis=len(sizes) - 1,
        )
        for row in blocks
    ]
    return prim.concat(*rows, axis=len(sizes) - 2)  # type: ignore[no-any-return]


@operator()
def all_reduce_op(x: Tensor, group: tuple = (), size: int = 1, kind: str = "sum") -> Tensor:  # type: ignore[type-arg]
    """The ``kind`` of every member's ``x``."""
    made, _ = prim.all_reduce(x, prim.create_token(), group=group, size=size, kind=kind)
    return made  # type: ignore[no-any-return]


@operator()
def all_gather_op(x: Tensor, group: tuple = (), size: int = 1) -> Tensor:  # type: ignore[type-arg]
    """Every member's ``x``, joined along axis 0."""
    made, _ = prim.all_gather(x, prim.create_token(), group=group, size=size, axis=0)
    return made  # type: ignore[no-any-return]


@operator()
def reduce_scatter_op(x: Tensor, group: tuple = (), size: int = 1, kind: str = "sum") -> Tensor:  # type: ignore[type-arg]
    """This member's part along axis 0 of the reduced ``x``."""
    made, _ = prim.reduce_scatter(x, prim.create_token(), group=group, size=size, axis=0, kind=kind)
    return made  # type: ignore[no-any-return]


@operator()
def all_to_all_op(x: Tensor, group: tuple = (), size: int = 1) -> Tensor:  # type: ignore[type-arg]
    """What the members have for this one: part r along axis 0 goes to member r."""
    made, _ = prim.all_to_all(x, prim.create_token(), group=group, size=size, split_axis=0, concat_axis=0)
    return made  # type: ignore[no-any-return]


@operator()
def broadcast_op(x: Tensor, group: tuple = (), size: int = 1, root: int = 0) -> Tensor:  # type: ignore[type-arg]
    """The ``x`` of the member ``root``."""
    made, _ = prim.broadcast_rank(x, prim.create_token(), group=group, size=size, root=root)
    return made  # type: ignore[no-any-return]


@operator()
def send_op(x: Tensor, group: tuple = (), peer: int = 0, tag: int = 0) -> Tensor:  # type: ignore[type-arg]
    """Send ``x`` to the member ``peer``; the result is ``x``."""
    prim.send(x, prim.create_token(), group=group, peer=peer, tag=tag)
    return x


@operator()
def recv_op(like: Tensor, group: tuple = (), peer: int = 0, tag: int = 0) -> Tensor:  # type: ignore[type-arg]
    """What the member ``peer`` sends, of the shape and dtype of ``like``."""
    shape, dtype = tuple(like.shape), like.dtype
    made, _ = prim.recv(prim.create_token(), shape=shape, dtype=dtype, group=group, peer=peer, tag=tag)
    return made  # type: ignore[no-any-return]


_COLLECTIVES: dict[str, Operator] = {
    "all_reduce": all_reduce_op,
    "all_gather": all_gather_op,
    "reduce_scatter": reduce_scatter_op,
    "all_to_all": all_to_all_op,
    "broadcast": broadcast_op,
    "send": send_op,
    "recv": recv_op,
}
COMMUNICATING = frozenset(f"phi.{op.name}" for op in (to_local_op, from_local_op, *_COLLECTIVES.values()))
"""The operations of captured programs that the partitioner has to see."""


def communicate(name: str, x: Tensor, **attributes: Any) -> Tensor:
    """Record the collective ``name`` on the ordinary ``x`` in the program that is captured. What flows through it has
    no gradient that a user would mean: call it without recording.
    """
    made: Tensor = bind(_COLLECTIVES[name], (x,), attributes)
    return made

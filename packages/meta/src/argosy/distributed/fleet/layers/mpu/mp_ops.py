"""What passes between the ranks of a tensor-parallel group, forward and backward (Shoeybi et al., 2019).

Each rank has tensors of its own. What all of them have in common has one gradient, the sum of what the ranks' parts
contribute: ``_c_identity`` and ``_mp_allreduce`` are each other's derivative, and so are ``_c_split`` and
``_c_concat``. Eagerly and while a function is captured alike; without a group, or with one of one rank, tensors pass as
they are.
"""

from __future__ import annotations

from typing import Any

from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import all_gather, all_reduce, reduce_scatter
from argosy.distributed.group import Group, world_group
from argosy.distributed.reduction import ReduceOp, reduction_name
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_autoparallel.api import reshard
from argosy_autoparallel.dist_tensor import replicated_payload
from argosy_autoparallel.rank_operators import communicate
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "_c_concat", "_c_identity", "_c_lookup_table", "_c_softmax_with_cross_entropy", "_c_split", "_mp_allreduce",
    "gather_along", "scatter_along", "sum_of", "take",
]  # fmt: skip


def _is_single(group: Group | None) -> bool:
    return group is None or group.nranks == 1


def sum_of(x: Tensor, group: Group, op: int = ReduceOp.SUM) -> Tensor:
    """A new tensor, the sum (or another reduction) of the members' ``x``; a constant for differentiation. A distributed
    one is whole on each rank of its mesh, of which all are members or none."""
    with no_grad():
        if is_capturing():
            kind = reduction_name(op, "sum_of")
            return communicate("all_reduce", x.detach(), group=group.key, size=group.nranks, kind=kind)
        if x.is_dist():
            return _sum_on_mesh(x.detach(), group, op)
        made = x.detach().clone()
        all_reduce(made, op, group)
        return made


def _sum_on_mesh(x: Tensor, group: Group, op: int) -> Tensor:
    whole = reshard(x, x.process_mesh, [])
    if not whole.payload.is_held:
        return whole
    made = whole._local_value().clone()
    all_reduce(made, op, group)
    return Tensor._wrap(replicated_payload(made.payload.to_host(), whole.process_mesh))


def gather_along(x: Tensor, group: Group, axis: int) -> Tensor:
    """The members' ``x`` joined along ``axis``; a constant for differentiation."""
    with no_grad():
        given = x.detach()
        if is_capturing():
            whole = communicate("all_gather", given.unsqueeze(0), group=group.key, size=group.nranks)
            parts = list(get_operator("unbind")(whole))
        else:
            parts = []
            all_gather(parts, given, group)
        return get_operator("concat")(parts, axis)  # type: ignore[no-any-return]


def take(x: Tensor, group: Group, axis: int) -> Tensor:
    """This member's part of ``x`` along ``axis``. Raises ValueError where the members' parts are not equal."""
    return _parts(x, group, axis)[group.rank]


def scatter_along(x: Tensor, group: Group, axis: int) -> Tensor:
    """This member's part along ``axis`` of the members' sum; a constant for differentiation. Raises ValueError where
    the members' parts are not equal."""
    parts = _parts(x, group, axis)
    with no_grad():
        if is_capturing():
            stacked = get_operator("stack")(parts)
            made = communicate("reduce_scatter", stacked, group=group.key, size=group.nranks, kind="sum")
            return made.reshape(parts[0].shape)
        part = parts[0].clone()
        reduce_scatter(part, [each.clone() for each in parts], ReduceOp.SUM, group)
        return part


def _parts(x: Tensor, group: Group, axis: int) -> list[Tensor]:
    if x.shape[axis] % group.nranks:
        raise ValueError(f"axis {axis} of {list(x.shape)} does not divide into the parts of {group.nranks} ranks")
    with no_grad():
        return list(get_operator("split")(x.detach(), group.nranks, axis))


class _Identity(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.detach().clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return sum_of(g, ctx.group)


class _Sum(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return sum_of(x, group)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


class _Concat(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return gather_along(x, group, x.ndim - 1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return take(g, ctx.group, g.ndim - 1)


class _SplitFunction(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return take(x, group, x.ndim - 1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return gather_along(g, ctx.group, g.ndim - 1)


def _c_identity(tensor: Tensor, group: Group | None = None, skip_c_identity_dynamic: bool = False) -> Tensor:
    """The tensor, whose gradient is the sum over the group."""
    return tensor if group is None or _is_single(group) else _Identity.apply(tensor, group)


def _c_concat(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The parts of the group, joined along the last axis."""
    return tensor if group is None or _is_single(group) else _Concat.apply(tensor, group)


def _c_split(tensor: Tensor, group: Group | None = None) -> Tensor:
    """This rank's part along the last axis."""
    return tensor if group is None or _is_single(group) else _SplitFunction.apply(tensor, group)


def _mp_allreduce(
    tensor: Tensor,
    op: object = None,
    group: Group | None = None,
    use_calc_stream: bool = True,
    use_model_parallel: bool = True,
    skip_c_identity_dynamic: bool = False,
) -> Tensor:
    """The sum over the group, whose gradient is the one of each part."""
    return tensor if group is None or _is_single(group) else _Sum.apply(tensor, group)


def _c_lookup_table(
    table: Tensor, index: Tensor, start_index: int = 0, vocab_size: int = -1, name: str | None = None
) -> Tensor:
    """Rows [..., width] of this rank's part of a table, whose first row has the index ``start_index``; zeros for
    indices of other parts. ``vocab_size`` changes nothing."""
    own = index - start_index
    inside = (own >= 0).logical_and(own < table.shape[0])
    rows = get_operator("embedding")(get_operator("where")(inside, own, own * 0), table)
    return rows * inside.cast(rows.dtype).unsqueeze(-1)  # type: ignore[no-any-return]


def _c_softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    group: Group | None = None,
    return_softmax: bool = False,
    ignore_index: int = -100,
) -> Tensor | tuple[Tensor, Tensor]:
    """Losses [..., 1] of this rank's logits [..., classes / ranks] and labels [...] or [..., 1], 0 where the label is
    ``ignore_index``; with this rank's part of the softmax where ``return_softmax``. ``group`` is that of all ranks by
    default."""
    chosen, count = world_group() if group is None else group, logits.shape[-1]
    labels = label.unsqueeze(-1) if label.ndim == logits.ndim - 1 else label
    wide = logits.cast("float32") if logits.dtype.itemsize < 4 else logits
    largest = wide.max(-1, keepdim=True)
    shifted = wide - (largest.detach() if chosen.nranks == 1 else sum_of(largest, chosen, ReduceOp.MAX))
    total = _mp_allreduce(shifted.exp().sum(-1, keepdim=True), group=chosen)
    own = labels - chosen.rank * count
    inside = (own >= 0).logical_and(own < count)
    found = get_operator("take_along_axis")(shifted, get_operator("where")(inside, own, own * 0), -1)
    target = _mp_allreduce(found * inside.cast(found.dtype), group=chosen)
    loss = (total.log() - target) * (labels != ignore_index).cast(total.dtype)
    return (loss, shifted.exp() / total) if return_softmax else loss

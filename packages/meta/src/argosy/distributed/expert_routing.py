"""Which tokens go to which expert, and tokens sent to the experts' ranks and back, as layers of experts do by hand.

Experts have numbers that go rank by rank: ``count[r * n + e]`` belongs to expert e of the n experts of rank r. Counts
are read on the host, so none of this can be captured; ``incubate``'s and ``argosy.models``' layers of experts can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.distributed.collective import alltoall_single, member_group
from argosy.distributed.group import Group
from argosy.framework.creation import to_tensor
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "assign_pos", "global_gather", "global_scatter", "limit_by_capacity", "number_count", "prune_gate_by_capacity",
    "random_routing",
]  # fmt: skip


def number_count(numbers: Tensor, upper_range: int) -> Tensor:
    """How often each of the numbers from 0 to ``upper_range`` comes, [upper_range]; others are not counted."""
    found = numbers.numpy().ravel()
    inside = found[(found >= 0) & (found < upper_range)]
    return _tensor(np.bincount(inside, minlength=upper_range), numbers)


def assign_pos(x: Tensor, cum_count: Tensor) -> Tensor:
    """Positions in the flat ``x`` of numbers of experts, expert by expert, the last position first; ``cum_count`` holds
    the running sums of :func:`number_count`. Negative numbers have no place. Returns [cum_count[-1]]."""
    experts = x.numpy().ravel()
    backward = np.flatnonzero(experts >= 0)[::-1]
    order = backward[np.argsort(experts[backward], kind="stable")]
    return _tensor(order[: int(cum_count.numpy()[-1])], cum_count)


def random_routing(topk_idx: Tensor, topk_value: Tensor, prob: Tensor, topk: int = 2) -> Tensor:
    """The experts ``topk_idx`` [tokens, 2] with -1 for a second one of less than half the weight of ``prob`` [tokens].

    Raises ValueError for another ``topk`` than 2.
    """
    if topk != 2:
        raise ValueError(f"random_routing: topk is 2, not {topk}")
    made = topk_idx.numpy().copy()
    made[:, 1] = np.where(2 * topk_value.numpy()[:, 1] < prob.numpy(), -1, made[:, 1])
    return _tensor(made, topk_idx)


def limit_by_capacity(expert_count: Tensor, capacity: Tensor, n_worker: int) -> Tensor:
    """The counts [n_worker * experts], of which all workers together have at most ``capacity`` [experts] for each
    expert; earlier workers come first. Raises ValueError for another number of counts."""
    counts, limits = expert_count.numpy(), capacity.numpy()
    if counts.size != n_worker * limits.size:
        raise ValueError(f"limit_by_capacity: {counts.size} counts are not {n_worker} times {limits.size} capacities")
    limited = np.minimum(np.cumsum(counts.reshape(n_worker, -1), 0), limits)
    return _tensor(np.diff(limited, axis=0, prepend=0).ravel(), expert_count)


def prune_gate_by_capacity(gate_idx: Tensor, expert_count: Tensor, n_expert: int, n_worker: int) -> Tensor:
    """The experts ``gate_idx`` of tokens, of which the first ``expert_count`` of each expert stay; -1 for others."""
    experts = gate_idx.numpy()
    limits = expert_count.numpy()[: n_expert * n_worker]
    made = np.full(experts.size, -1, experts.dtype)
    for expert, limit in enumerate(limits):
        made[np.flatnonzero(experts.ravel() == expert)[: int(limit)]] = expert
    return _tensor(made.reshape(experts.shape), gate_idx)


def global_scatter(
    x: Tensor, local_count: Tensor, global_count: Tensor, group: Group | None = None, use_calc_stream: bool = True
) -> Tensor | None:
    """Rows sent to experts: ``local_count`` says how many of ``x``, expert by expert, ``global_count`` how many come
    from each rank for each expert of this one (``count[r * n + e]`` from rank r for expert e).

    Returns the rows that came, those of the first expert first; None on a rank that is not a member. The derivative is
    :func:`global_gather`. Raises ValueError where the counts do not fit the rows.
    """
    return _send_rows("global_scatter", _Scatter, x, local_count, global_count, group)


def global_gather(
    x: Tensor, local_count: Tensor, global_count: Tensor, group: Group | None = None, use_calc_stream: bool = True
) -> Tensor | None:
    """Rows sent back by experts: ``x`` as :func:`global_scatter` gave it for ``local_count`` and ``global_count``, on
    every rank.

    Returns the rows in the order in which they were sent; None on a rank that is not a member. The derivative is
    :func:`global_scatter`. Raises ValueError where the counts do not fit the rows.
    """
    return _send_rows("global_gather", _Gather, x, local_count, global_count, group)


def _send_rows(
    kind: str, function: type[PyLayer], x: Tensor, local: Tensor, arriving: Tensor, group: Group | None
) -> Tensor | None:
    chosen = member_group(group, kind)
    if chosen is None:
        return None
    flat = [each.numpy().astype(np.int64).ravel() for each in (local, arriving)]
    if flat[0].size != flat[1].size or flat[0].size % chosen.nranks or any((each < 0).any() for each in flat):
        raise ValueError(
            f"{kind}: counts are numbers from 0, as many of each kind for each of {chosen.nranks} ranks, not "
            f"{flat[0].tolist()} and {flat[1].tolist()}"
        )
    counts = [each.reshape(chosen.nranks, -1) for each in flat]
    given = counts[0] if kind == "global_scatter" else counts[1]
    if given.sum() != x.shape[0]:
        raise ValueError(f"{kind}: counts of {given.sum()} rows, but x has {x.shape[0]}")
    made: Tensor = function.apply(x, *counts, chosen)
    return made


def _to_experts(x: Tensor, local: Any, arriving: Any, group: Group) -> Tensor:
    """Rows by rank and expert to rows by expert and rank."""
    return _take(_exchange(x, local.sum(1), arriving.sum(1), group), np.argsort(_order(arriving)))


def _from_experts(x: Tensor, local: Any, arriving: Any, group: Group) -> Tensor:
    """Rows by expert and rank back to rows by rank and expert."""
    return _exchange(_take(x, _order(arriving)), arriving.sum(1), local.sum(1), group)


def _order(counts: Any) -> Any:
    """Where rows that lie by expert and rank lie when they are taken by rank and expert."""
    ranks, experts = counts.shape
    starts = np.concatenate([[0], np.cumsum(counts.T.ravel())[:-1]]).reshape(experts, ranks)
    runs = [np.arange(starts[e, r], starts[e, r] + counts[r, e]) for r in range(ranks) for e in range(experts)]
    return np.concatenate(runs) if runs else np.zeros(0, np.int64)


def _exchange(x: Tensor, outgoing: Any, incoming: Any, group: Group) -> Tensor:
    made: Tensor = get_operator("zeros")([int(incoming.sum()), *x.shape[1:]], x.dtype.name)
    alltoall_single(made, x, outgoing.tolist(), incoming.tolist(), group)
    return made


def _take(x: Tensor, rows: Any) -> Tensor:
    return get_operator("index_select")(x, to_tensor(rows.astype(np.int64)))  # type: ignore[no-any-return]


class _Scatter(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, local: Any, arriving: Any, group: Group) -> Tensor:
        ctx.counts = local, arriving, group
        return _to_experts(x, local, arriving, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        with no_grad():
            return _from_experts(gradient, *ctx.counts)


class _Gather(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Tensor, local: Any, arriving: Any, group: Group) -> Tensor:
        ctx.counts = local, arriving, group
        return _from_experts(x, local, arriving, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        with no_grad():
            return _to_experts(gradient, *ctx.counts)


def _tensor(values: Any, like: Tensor) -> Tensor:
    return to_tensor(np.ascontiguousarray(values), like.dtype)

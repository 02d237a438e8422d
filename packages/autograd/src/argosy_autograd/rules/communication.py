"""Derivatives of collectives: each is a linear map of the ranks' tensors taken together, and its transpose is a
collective.

The gradient is that of the sum of all ranks' losses. A program in which every rank computes the same loss
counts it once for each rank; whoever builds such a program divides, or seeds the gradient on one rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_autograd.algebra import Value, where
from argosy_autograd.errors import MissingRule
from argosy_autograd.registry import jvp, vjp
from argosy_autograd.tokens import communicate
from argosy_phi_ops import prim
from argosy_phi_ops.primitives.communication import blocking_form

Results = tuple[Value, Value]
Cotangents = tuple[Value, None]
Group = tuple[int, ...]


@vjp("all_reduce")
def _(g: Cotangents, results: Results, x: Value, token: Value, *, group: Group, size: int, kind: str) -> Cotangents:
    if kind in ("sum", "avg"):
        return communicate("all_reduce", g[0], group=group, size=size, kind=kind), None
    total = communicate("all_reduce", g[0], group=group, size=size, kind="sum")
    if kind == "prod":
        return total * results[0] / x, None
    mine, ties = _winners(results[0], x, group, size)
    return where(mine, total / ties, 0), None


@jvp("all_reduce")
def _(
    results: Results, x: Value, token: Value, dx: Value, _: None, *, group: Group, size: int, kind: str
) -> Cotangents:
    if kind in ("sum", "avg"):
        return communicate("all_reduce", dx, group=group, size=size, kind=kind), None
    if kind == "prod":
        share = communicate("all_reduce", dx / x, group=group, size=size, kind="sum")
        return share * results[0], None
    mine, ties = _winners(results[0], x, group, size)
    return communicate("all_reduce", where(mine, dx, 0), group=group, size=size, kind="sum") / ties, None


def _winners(y: Value, x: Value, group: Group, size: int) -> tuple[Value, Value]:
    """Where this rank has the extremum, and how many ranks do."""
    mine = prim.eq(x, y)
    return mine, communicate("all_reduce", prim.cast(mine, dtype=x.dtype), group=group, size=size, kind="sum")


@vjp("all_gather")
def _(g: Cotangents, results: Results, x: Value, token: Value, *, group: Group, size: int, axis: int) -> Cotangents:
    return communicate("reduce_scatter", g[0], group=group, size=size, axis=axis, kind="sum"), None


@vjp("reduce_scatter")
def _(
    g: Cotangents, results: Results, x: Value, token: Value, *, group: Group, size: int, axis: int, kind: str
) -> Cotangents:
    _check_linear("reduce_scatter", kind)
    gathered = communicate("all_gather", g[0], group=group, size=size, axis=axis)
    return gathered if kind == "sum" else gathered / size, None


@jvp("reduce_scatter")
def _(results: Results, x: Value, token: Value, dx: Value, _: None, *, kind: str, **attributes: Any) -> Cotangents:
    _check_linear("reduce_scatter", kind)
    return communicate("reduce_scatter", dx, kind=kind, **attributes), None


def _check_linear(name: str, kind: str) -> None:
    if kind not in ("sum", "avg"):
        raise MissingRule(f"{name} of kind {kind!r} has no derivative rule; use all_reduce, and slice its result")


@vjp("all_to_all")
def _(
    g: Cotangents,
    results: Results,
    x: Value,
    token: Value,
    *,
    group: Group,
    size: int,
    split_axis: int,
    concat_axis: int,
) -> Cotangents:
    back = {"split_axis": concat_axis, "concat_axis": split_axis}
    return communicate("all_to_all", g[0], group=group, size=size, **back), None


@vjp("broadcast_rank")
def _(g: Cotangents, results: Results, x: Value, token: Value, *, group: Group, size: int, root: int) -> Cotangents:
    total = communicate("all_reduce", g[0], group=group, size=size, kind="sum")
    return communicate("permute", total, pairs=((root, root),)), None  # zeros everywhere but on the root


@vjp("permute")
def _(g: Cotangents, results: Results, x: Value, token: Value, *, pairs: tuple[tuple[int, int], ...]) -> Cotangents:
    rounds: list[dict[int, int]] = []  # a source that has several targets gets their cotangents one after another
    for source, target in pairs:
        free = next((r for r in rounds if source not in r), None)
        if free is None:
            rounds.append(free := {})
        free[source] = target
    parts = [communicate("permute", g[0], pairs=tuple((t, s) for s, t in r.items())) for r in rounds]
    total = parts[0] if parts else g[0] * 0
    for part in parts[1:]:
        total = total + part
    return total, None


@vjp("start")
def _(
    g: tuple[Value, None, None], results: tuple[Value, Value, Value], x: Value, token: Value, *, collective: str,
    **attributes: Any,
) -> Cotangents:  # fmt: skip
    """The transposed collective, begun and ended where the derivative stands."""
    _check_linear("start", attributes["kind"])
    blocking, chosen = blocking_form(collective, attributes)
    cotangents: Cotangents = vjp.find(blocking.name)((g[0], None), (results[0], token), x, token, **chosen)
    return cotangents


@jvp("start")
def _(
    results: tuple[Value, Value, Value], x: Value, token: Value, dx: Value, _: None, *, collective: str,
    **attributes: Any,
) -> tuple[Value, None, None]:  # fmt: skip
    _check_linear("start", attributes["kind"])
    blocking, chosen = blocking_form(collective, attributes)
    return jvp.find(blocking.name)((results[0], token), x, token, dx, None, **chosen)[0], None, None


@vjp("wait")
def _(g: Cotangents, results: Results, x: Value, handle: Value, token: Value) -> tuple[Value, None, None]:
    return g[0], None, None


@jvp("wait")
def _(results: Results, x: Value, handle: Value, token: Value, dx: Value, _: None, __: None) -> Cotangents:
    return dx, None


def _register_linear(name: str) -> None:
    def rule(results: Results, x: Value, token: Value, dx: Value, _: None, **attributes: Any) -> Cotangents:
        return communicate(name, dx, **attributes), None

    jvp.add(name, rule)


for _name in ("all_gather", "all_to_all", "broadcast_rank", "permute"):
    _register_linear(_name)


def _register_coalesced(name: str) -> None:
    """Of each tensor by itself."""

    def backward(g: Sequence[Value], results: Sequence[Value], *operands: Value, **attributes: Any) -> tuple[Any, ...]:
        rule, chosen, token = vjp.find(name), {**attributes, "axis": 0}, operands[-1]
        parts = zip(g[:-1], results[:-1], operands[:-1], strict=True)
        return *(
            None if gi is None else rule((gi, None), (y, token), x, token, **chosen)[0] for gi, y, x in parts
        ), None

    def forward(results: Sequence[Value], *operands: Value, **attributes: Any) -> tuple[Any, ...]:
        rule, chosen, token = jvp.find(name), {**attributes, "axis": 0}, results[-1]
        tangents = operands[len(results) : -1]
        parts = zip(results[:-1], operands[: len(results) - 1], tangents, strict=True)
        return *(None if dx is None else rule((y, token), x, token, dx, None, **chosen)[0] for y, x, dx in parts), None

    vjp.add(f"{name}_coalesced", backward)
    jvp.add(f"{name}_coalesced", forward)


for _name in ("all_gather", "reduce_scatter"):
    _register_coalesced(_name)

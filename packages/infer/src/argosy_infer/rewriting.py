"""How each primitive is rewritten over the flat token axis: batch axes go, sequence (or merged) axes become the
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_infer.errors import IncrementalError
from argosy_infer.roles import BATCH, FLAT, TOKENS, Roles
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.core import Operation
from argosy_pir.values import Value

__all__ = ["REWRITES", "Site", "rewrite_elementwise"]


class Site:
    """One operation being rewritten: its new operands, and the roles of operands and results.

    ``positions`` [t] are those of the tokens.
    """

    __slots__ = ("op", "operands", "positions", "results", "roles")

    def __init__(
        self, op: Operation, operands: list[Value], roles: list[Roles], results: list[Roles], positions: Value
    ) -> None:
        self.op = op
        self.operands = operands
        self.roles = roles
        self.results = results
        self.positions = positions
        for role in results:
            _check(role, op)

    @property
    def tokens(self) -> Any:
        """The number of tokens."""
        return self.positions.shape[0]

    def attribute(self, name: str) -> Any:
        """An attribute of the operation."""
        return self.op.attributes[name]

    def shape(self, index: int = 0) -> tuple[Any, ...]:
        """The new shape of a result."""
        old, roles = self.op.results[index].shape, self.results[index]
        return tuple(self.tokens if r in (TOKENS, FLAT) else n for n, r in zip(old, roles, strict=True) if r != BATCH)

    def emit(self, operands: Sequence[Value] | None = None, **attributes: Any) -> Any:
        """The primitive on the new operands, with some attributes replaced."""
        primitive = PRIMITIVES[self.op.kind]
        kept = {k: v for k, v in self.op.attributes.items() if k in primitive.attributes}
        return primitive(*(operands or self.operands), **{**kept, **attributes})


def _check(roles: Roles, op: Operation) -> None:
    along = [r for r in roles if r in (TOKENS, FLAT)]
    if len(along) > 1:
        raise IncrementalError(
            f"{op.name} at {op.location} pairs positions with positions; use causal attention instead"
        )
    if BATCH in roles and not along:
        raise IncrementalError(f"{op.name} at {op.location} has a value for each sequence but not for each token")


def kept_axes(roles: Roles) -> dict[int, int]:
    """Old axis to new axis, batch axes left out."""
    return {old: new for new, old in enumerate(i for i, role in enumerate(roles) if role != BATCH)}


def rewrite_elementwise(site: Site) -> Any:
    """Elementwise operations stay."""
    return site.emit()


def _broadcast(site: Site) -> Any:
    (x,), roles, target = site.operands, site.roles[0], kept_axes(site.results[0])
    axes, sizes = [], []
    for old, axis in enumerate(site.attribute("axes")):
        if roles[old] != BATCH and axis in target:
            axes.append(target[axis])
            sizes.append(x.shape[kept_axes(roles)[old]])
    if len(sizes) != x.ndim:  # an axis of size one stood for the batch
        x = prim.reshape(x, shape=tuple(sizes))
    return site.emit([x], shape=site.shape(), axes=tuple(axes))


def _reshape(site: Site) -> Any:
    return site.emit(shape=site.shape())


def _transpose(site: Site) -> Any:
    axes = kept_axes(site.roles[0])
    return site.emit(permutation=tuple(axes[i] for i in site.attribute("permutation") if i in axes))


def _per_axis(*names: str) -> Callable[[Site], Any]:
    """For attributes with one entry for each axis."""

    def rewrite(site: Site) -> Any:
        keep = kept_axes(site.roles[0])
        attributes: dict[str, Any] = {name: tuple(site.attribute(name)[i] for i in keep) for name in names}
        return site.emit(**attributes)

    return rewrite


def _slice(site: Site) -> Any:
    roles = site.roles[0]
    if not any(roles) and any(site.results[0]):
        return _rows_at_positions(site)
    limit = [site.tokens if roles[i] in (TOKENS, FLAT) else site.attribute("limit")[i] for i in kept_axes(roles)]
    start, stride = ([site.attribute(n)[i] for i in kept_axes(roles)] for n in ("start", "stride"))
    return site.emit(start=tuple(start), limit=tuple(limit), stride=tuple(stride))


def _rows_at_positions(site: Site) -> Any:
    """The first rows of a table, as many as the sequence is long, are the rows at the positions."""
    axis = site.results[0].index(TOKENS)
    indices = prim.reshape(site.positions, shape=(site.tokens, 1))
    table = site.operands[0]
    prim.check_index(site.positions, operator="positions", low=0, size=table.shape[axis])
    rows = prim.gather(table, indices, axes=(axis,))
    order = [*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)]
    return rows if axis == 0 else prim.transpose(rows, permutation=tuple(order))


def _axes(site: Site) -> Any:
    keep = kept_axes(site.roles[0])
    return site.emit(axes=tuple(keep[i] for i in site.attribute("axes")))


def _axis(site: Site) -> Any:
    return site.emit(axis=kept_axes(site.roles[0])[site.attribute("axis")])


def _iota(site: Site) -> Any:
    axis, roles = site.attribute("axis"), site.results[0]
    if roles[axis] == BATCH or roles[axis] == FLAT:
        raise IncrementalError(f"prim.iota at {site.op.location} counts along the batch")
    keep = kept_axes(roles)
    if roles[axis] != TOKENS:
        return site.emit(shape=site.shape(), axis=keep[axis])
    positions = site.positions
    if positions.dtype != site.attribute("dtype"):
        positions = prim.cast(positions, dtype=site.attribute("dtype"))
    return prim.broadcast(positions, shape=site.shape(), axes=(keep[axis],))


def _dot_general(site: Site) -> Any:
    keep = [kept_axes(roles) for roles in site.roles]
    attributes: dict[str, Any] = {}
    for side, name in enumerate(("lhs", "rhs")):
        for what in ("contract", "batch"):
            old = site.attribute(f"{name}_{what}")
            attributes[f"{name}_{what}"] = tuple(keep[side][i] for i in old if i in keep[side])
    return site.emit(**attributes)


def _gather(site: Site) -> Any:
    batch, keep = site.attribute("batch"), kept_axes(site.roles[0])
    dropped = batch - sum(1 for i in keep if i < batch)
    return site.emit(axes=tuple(keep[i] for i in site.attribute("axes")), batch=batch - dropped)


REWRITES: dict[str, Callable[[Site], Any]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _per_axis("low", "high", "interior"),
    "reverse": _axes,
    "concat": _axis,
    "iota": _iota,
    "argmax": _axis,
    "argmin": _axis,
    "cumulative": _axis,
    "sort": _axis,
    "dot_general": _dot_general,
    "gather": _gather,
    **{f"reduce_{kind}": _axes for kind in ("sum", "prod", "max", "min", "and", "or")},
}
"""Rewrites of primitives that name axes or shapes."""

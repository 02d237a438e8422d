"""Operations that are not computed but decide where values lie, look at them where they are, or communicate by
themselves: those that captured programs have of ``reshard``, of parts of tensors, and of collectives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.tensor_layout import WHOLE, Layout, parse_layout
from argosy_autoparallel.value_layouts import ValueLayouts
from argosy_pir import Operation, TensorType, Value

__all__ = ["PLACING", "Walk", "communicate"]


class Walk(Protocol):
    """The partitioner that has come to such an operation."""

    rank: int
    emitter: Emitter
    held: dict[Value, ValueLayouts]

    def layout(self, value: Value) -> Layout | None:
        """How a value lies."""

    def get(self, value: Value, layout: Layout | None) -> Value | None:
        """The local value in a layout."""

    def store(self, result: Value, layout: Layout | None, value: Value | None) -> None:
        """Let a result be there as the local ``value``."""

    def copy(
        self, op: Operation, operands: Sequence[Value | None], inner: Mapping[Value, Value | None] | None = None
    ) -> list[Value]:
        """Emit the operation as it is; its results."""


def relayout(walk: Walk, op: Operation) -> None:
    x, *like = op.operands
    if op.attributes.get("target") == WHOLE:
        _gather(walk, op, x)
        return
    target = parse_layout(op.attributes["target"]) if op.attributes.get("target") else None
    if target is None and like:
        natural = walk.layout(like[0])
        target = None if natural is None else natural.cotangent()
    if target is None:
        walk.held[op.result] = walk.held[x]
        return
    walk.store(op.result, target, walk.get(x, target))


def _gather(walk: Walk, op: Operation, x: Value) -> None:
    """The result is ``x`` as an ordinary tensor: all ranks have to have it."""
    mesh = walk.held[x].mesh
    if mesh is None:
        walk.held[op.result] = walk.held[x]
        return
    if not mesh.contains(walk.rank):
        raise ValueError(
            f"unshard_dtensor{op.location.suffix}: rank {walk.rank} is outside of {mesh!r}; in a captured function "
            "the mesh should have all ranks"
        )
    walk.store(op.result, None, walk.get(x, Layout.replicate(mesh)))


def to_local(walk: Walk, op: Operation) -> None:
    """The result is an ordinary tensor, another one on each rank: this one's part."""
    x, *like = op.operands
    layout = walk.layout(like[0]) if like else walk.layout(x)
    if layout is None:
        raise ValueError(f"dtensor_to_local{op.location.suffix}: {x.type} is not distributed; it is its own part")
    if not layout.mesh.contains(walk.rank):
        raise ValueError(
            f"dtensor_to_local{op.location.suffix}: rank {walk.rank} is outside of {layout.mesh!r} and has "
            "no part; in a captured function the mesh should have all ranks"
        )
    walk.store(op.result, None, walk.get(x, layout.cotangent() if like else layout))


def from_local(walk: Walk, op: Operation) -> None:
    part, *like = op.operands
    layout = parse_layout(op.attributes["target"]) if op.attributes.get("target") else None
    if layout is None:
        layout = walk.layout(like[0]).cotangent()  # type: ignore[union-attr]
    walk.store(op.result, layout, walk.get(part, None) if layout.mesh.contains(walk.rank) else None)


def check_index(walk: Walk, op: Operation) -> None:
    """Each rank looks at its part of the indices, wherever that is: nothing is moved for a check."""
    (indices,) = op.operands
    layout = walk.layout(indices)
    if layout is not None and layout.is_partial:
        layout = Layout(layout.mesh, [Replicate() if p.is_partial() else p for p in layout.placements])
    made = walk.get(indices, layout)
    if made is not None:
        walk.copy(op, [made])


def communicate(walk: Walk, op: Operation) -> None:
    """What the program itself communicates takes its place in the chain of tokens: whole tensors, or of a
    distributed one each rank its part, with the ranks beside it."""
    if op.name == "prim.create_token":
        return
    if op.name in ("prim.start", "prim.start_recv", "prim.wait"):
        raise NotImplementedError(
            f"'{op.name}'{op.location.suffix}: communication is started in programs of one rank only"
        )
    operands = [x for x in op.operands if isinstance(x.type, TensorType)]
    layout = walk.layout(operands[0]) if operands else None
    if layout is not None:
        layout = layout.cotangent()
        axes = {op.attributes[name] for name in ("axis", "split_axis", "concat_axis") if name in op.attributes}
        if any(layout.sharding_dims(axis) for axis in axes):
            raise NotImplementedError(
                f"'{op.name}'{op.location.suffix} joins or splits an axis that lies on {layout!r}"
            )
    local = [walk.get(x, layout) for x in operands]
    made = None
    if layout is None or layout.mesh.contains(walk.rank):
        made = walk.emitter.communicate(op.kind, local[0] if local else None, **dict(op.attributes))
    if made is not None or (layout is not None and op.results and isinstance(op.results[0].type, TensorType)):
        walk.store(op.results[0], layout, made)


PLACING = {
    "prim.relayout": relayout, "prim.to_local": to_local, "prim.from_local": from_local,
    "prim.check_index": check_index,
}  # fmt: skip
"""What is not computed but decides where values lie, or looks at them where they are."""

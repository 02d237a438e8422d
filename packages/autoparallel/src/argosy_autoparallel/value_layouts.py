"""Layouts of a value of the global program: those in which it exists by now, and what is known of it beforehand."""

from __future__ import annotations

from argosy_autoparallel.local_slice import estimate_elements
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.resharding.emitter import shape_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_pir import Operation, TensorType, Value
from argosy_pir.folding import constant_of
from argosy_pir.scalars import decode_scalar
from argosy_pir.values import OpResult
from argosy_tensorcore.dtype import as_dtype

__all__ = ["ValueLayouts", "bytes_of", "captured_values", "is_static", "is_zero"]


class ValueLayouts:
    """The forms in which a value exists: ``versions`` by layout (None: plain, on every rank of the world), and the
    numbers of the operations ``since`` which they do. One that is deferred is result ``number`` of ``op``."""

    __slots__ = ("depth", "mesh", "number", "op", "primary", "since", "versions")

    def __init__(self) -> None:
        self.versions: dict[Layout | None, Value | None] = {}
        self.since: dict[Layout | None, int] = {}
        self.primary: Layout | None = None
        self.op: Operation | None = None
        self.number = 0
        self.depth = 0
        self.mesh: ProcessMesh | None = None

    def copy(self) -> ValueLayouts:
        """What is known now."""
        made = ValueLayouts()
        made.versions, made.since = dict(self.versions), dict(self.since)
        made.primary, made.op, made.number, made.depth, made.mesh = (
            self.primary, self.op, self.number, self.depth, self.mesh,
        )  # fmt: skip
        return made

    def keep(self, layout: Layout | None, local: Value | None, clock: int) -> None:
        """The value exists in ``layout`` from now on (None: this rank is outside of the mesh)."""
        self.versions[layout] = local
        self.since[layout] = clock

    def forget(self, layout: Layout) -> None:
        """The value is to be brought into ``layout`` anew where it is needed again."""
        del self.versions[layout], self.since[layout]

    @property
    def is_deferred(self) -> bool:
        return self.op is not None


def captured_values(op: Operation) -> list[Value]:
    """Values from outside that the regions of ``op`` read."""
    if not op.regions:
        return []
    inside: set[Value] = set()
    read: dict[Value, None] = {}
    for inner in op.walk():
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        if inner is not op:
            inside.update(inner.results)
            read.update(dict.fromkeys(inner.operands))
    return [value for value in read if value not in inside]


def bytes_of(value: Value) -> float:
    """The size of the global value."""
    return float(estimate_elements(shape_of(value)) * as_dtype(value.dtype).itemsize)


def is_static(value: Value) -> bool:
    """Whether it is a tensor of sizes known beforehand."""
    return isinstance(value.type, TensorType) and value.type.is_static


def is_zero(value: Value) -> bool:
    """Whether ``value`` is known to be zero everywhere: then it is each term of a sum that is zero, too."""
    while isinstance(value, OpResult) and value.op.name in ("prim.broadcast", "prim.reshape", "prim.cast"):
        value = value.op.operand(0)
    dense = constant_of(value)
    if dense is None or not dense.data:
        return False
    itemsize = as_dtype(dense.type.dtype).itemsize
    return len(dense.data) == itemsize and decode_scalar(dense.data, dense.type.dtype) == 0

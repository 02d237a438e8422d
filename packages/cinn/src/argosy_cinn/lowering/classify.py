"""What kind of code each operation becomes."""

from __future__ import annotations

from math import prod

from argosy_cinn.dialect import SCALED
from argosy_cinn.forms.dtypes import DTYPES, FLOATS, INTEGERS, NARROW, PARTS, SMALL_INTEGERS
from argosy_cinn.forms.nest import REDUCTIONS
from argosy_cinn.kinds import KIND_OF_OPERATION
from argosy_cinn.lowering.elements import is_inline
from argosy_cinn.shapes import count, estimate, sizes
from argosy_pir.core import Operation
from argosy_pir.types import TensorType

INLINE, REDUCE, PRODUCT, HOST, CONSTANT = "inline", "reduce", "product", "host", "constant"
UPDATE, SCAN, CONTROL, OWN, JOIN = "update", "scan", "control", "own", "join"
#: A dynamic_update_slice that writes at most this share of its operand is an update; others are computed like views.
_SMALL_UPDATE = 0.25


def classify(op: Operation) -> str:
    """The kind of an operation.

    ``inline``: computed inside its users' loops or in a loop of its own. ``reduce``, ``product`` (a matrix product).
    ``update``: a copy of an operand, some elements of which are written over. ``scan``: a cumulative. ``constant``.
    ``own``: a kernel alone, see `argosy_cinn.kinds`. Two are found by `Memory`, not here. ``control``: a branch or loop
    with native regions. ``join``: parts that are made where they are to lie, see `argosy_cinn.fusion.joins`.
    ``host``: there is no native code, the reference kernel runs it between native segments.
    """
    if op.name == "builtin.constant":
        return CONSTANT if op.attributes["value"].type.dtype in DTYPES | PARTS.keys() else HOST
    if not all(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
        return HOST
    if op.name in REDUCTIONS:
        return REDUCE if op.result.dtype in DTYPES and reduction_axes(op) is not None else HOST
    if op.name in KIND_OF_OPERATION:
        return OWN
    if op.name == SCALED:
        return PRODUCT
    if op.name == "prim.dot_general":
        return PRODUCT if has_product(op.operand(0).dtype, op.attributes["accumulate"] or op.result.dtype) else HOST
    if op.name == "prim.scatter":
        return UPDATE if _has_scatter(op) else HOST
    if op.name == "prim.cumulative":
        return SCAN if op.result.dtype in (FLOATS if op.attributes["kind"] == "logsumexp" else DTYPES) else HOST
    if op.name == "prim.dynamic_update_slice" and is_inline(op):
        small = estimate(count(op.operand(1))) <= _SMALL_UPDATE * estimate(count(op.result))
        return UPDATE if small else INLINE
    return INLINE if is_inline(op) else HOST


def has_product(source: str, accumulate: str) -> bool:
    """Whether matrix products of ``source`` summed in ``accumulate`` have code."""
    if source in SMALL_INTEGERS:
        return accumulate == "int32"
    if source in ("float32", "float64") or source in INTEGERS:
        return accumulate == source
    return source in ("bfloat16", "float16") and accumulate in (source, "float32")


def _has_scatter(op: Operation) -> bool:
    """Narrow floats accumulate in float32, see `argosy_cinn.rewrites.widening`."""
    dtype = op.result.dtype
    if dtype not in DTYPES or op.operand(1).dtype not in DTYPES:
        return False
    return op.attributes["kind"] == "set" or (dtype != "bool" and dtype not in NARROW)


class ReductionAxes:
    """The axes of a reduction as sizes: ``kept_outer`` x ``reduced`` x ``kept_inner`` in memory order."""

    __slots__ = ("kept_inner", "kept_outer", "reduced")

    def __init__(self, kept_outer: int, reduced: int, kept_inner: int) -> None:
        self.kept_outer, self.reduced, self.kept_inner = kept_outer, reduced, kept_inner


def reduction_axes(op: Operation) -> ReductionAxes | None:
    """The layout of a reduction over adjacent axes (others of size one aside), or of a cumulative; None for
    interleaved axes."""
    if op.name == "prim.cumulative":
        shape, axis = sizes(op.operand(0)), op.attributes["axis"]
        return ReductionAxes(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    shape, axes = sizes(op.operand(0)), set(op.attributes["axes"])
    real = [i for i, n in enumerate(shape) if n != 1]
    chosen = [k for k, i in enumerate(real) if i in axes]
    if not chosen or chosen != list(range(chosen[0], chosen[-1] + 1)):
        return None
    outer = [shape[i] for i in real[: chosen[0]]]
    inner = [shape[i] for i in real[chosen[-1] + 1 :]]
    return ReductionAxes(prod(outer), prod(shape[i] for i in real if i in axes), prod(inner))

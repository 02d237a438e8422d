"""What a mask selects, while capturing: how many elements there are depends on values.

``x[mask]`` is kept as the whole of ``x``, with harmless numbers where the mask does not hold, and the mask. Elementwise
operators then apply to the whole, and a reduction takes its neutral element where the mask does not hold, see
`boolean_masking_rules`: neither needs the number of elements, which no program could have. What does need it (a shape,
sorting, a matrix of those elements) asks the tracer to `capture.tracer.Tracer.settle` it: a graph break,
after which the selection is an ordinary tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = [
    "apply_operator", "detach_selection", "expand_mask", "filler", "is_plain", "mask_values", "overlaid", "positions",
    "same_mask", "selection",
]  # fmt: skip

_DEPTH = 12  # operations that two masks are compared through


def apply_operator(tracer: Tracer, name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of an operator, recorded."""
    op = get_operator(name)
    operands, attributes = op.signature.bind(args, kwargs)
    return tracer.record_operator(op, operands, attributes)


def is_plain(x: Any) -> bool:
    """Whether ``x`` is a tensor whose size is known, or none at all."""
    return type(x) is not Tensor or not (x.payload.is_traced and x.payload.selected)


def filler(dtype: Any) -> Any:
    """An element that most functions, and their derivatives, are finite at."""
    return {"b": False, "i": 1, "u": 1}.get(dtype.kind, 0.5)


def expand_mask(tracer: Tracer, mask: Tensor, rank: int) -> Tensor:
    """A mask of leading axes with axes of size one behind."""
    missing = rank - mask.ndim
    if not missing:
        return mask
    return apply_operator(tracer, "reshape", mask, [*mask.payload.shape, *(1,) * missing])  # type: ignore[no-any-return]


def mask_values(tracer: Tracer, mask: Tensor, x: Tensor, fill: Any = None, rank: int = 0) -> Tensor:
    """``x``, with at least ``rank`` axes, where the mask holds. No gradient comes from elsewhere, not even a NaN."""
    fill = filler(x.payload.dtype) if fill is None else fill
    made: Tensor = apply_operator(tracer, "where", expand_mask(tracer, mask, max(x.ndim, mask.ndim, rank)), x, fill)
    return made


def detach_selection(tracer: Tracer, x: Tensor) -> Tensor:
    """The selection ``x``; where it does not want the gradients that the whole wants, of the whole without them."""
    whole = x.payload.whole
    if not x.stop_gradient or whole.stop_gradient:
        return x
    return tracer.select(whole.detach(), x.payload.mask)


def selection(tracer: Tracer, x: Tensor, mask: Tensor) -> Tensor | None:
    """``x[mask]``; None where the mask is not of the leading axes."""
    inner = mask.payload
    if not is_plain(x):
        outer = detach_selection(tracer, x).payload
        if is_plain(mask) or not same_mask(outer.mask, inner.mask) or inner.ndim > 1:
            return None
        both = apply_operator(tracer, "logical_and", outer.mask, inner.whole)
        return tracer.select(mask_values(tracer, both, outer.whole), both)
    leading = tuple(x.payload.shape)[: mask.ndim] if is_plain(mask) else None
    if not mask.ndim or leading != tuple(mask.payload.shape):
        return None
    return tracer.select(mask_values(tracer, mask, x), mask)


def overlaid(tracer: Tracer, x: Tensor, mask: Tensor, value: Any) -> Tensor | None:
    """``x`` with ``value`` where the mask holds: what another selection by it gave, or what broadcasts against the axes
    behind those of the mask. None for other values."""
    if not (type(value) is Tensor and is_plain(x) and is_plain(mask)):
        return None
    if tuple(x.payload.shape)[: mask.ndim] != tuple(mask.payload.shape):
        return None
    if not is_plain(value):
        if not same_mask(value.payload.mask, mask) or value.payload.whole.ndim != x.ndim:
            return None
        value = detach_selection(tracer, value).payload.whole
    elif value.ndim > x.ndim - mask.ndim:
        return None
    if value.payload.dtype is not x.payload.dtype:
        value = apply_operator(tracer, "cast", value, x.payload.dtype.name)
    return apply_operator(tracer, "where", expand_mask(tracer, mask, x.ndim), value, x)  # type: ignore[no-any-return]


def positions(tracer: Tracer, x: Tensor) -> Tensor | None:
    """``nonzero(x)``: the positions of all elements, of which a mask selects some. None for sizes that are open."""
    shape = x.payload.shape if is_plain(x) else ()
    if not shape or not all(isinstance(n, int) for n in shape):
        return None
    mask = x if x.payload.dtype.name == "bool" else apply_operator(tracer, "not_equal", x, 0)
    columns = []
    for axis, size in enumerate(shape):
        line = apply_operator(tracer, "arange", 0, size, 1, "int64")
        line = apply_operator(tracer, "reshape", line, [size if i == axis else 1 for i in range(len(shape))])
        columns.append(apply_operator(tracer, "expand", line, list(shape)))
    return tracer.select(apply_operator(tracer, "stack", columns, -1), mask)


def same_mask(a: Tensor, b: Tensor) -> bool:
    """Whether two masks hold at the same places: the same operations on the same values made them."""
    return a is b or (
        a.payload.is_traced and b.payload.is_traced and _same_values((a.payload.value,), (b.payload.value,), 0)
    )


def _same_values(these: Sequence[Value], those: Sequence[Value], depth: int) -> bool:
    return len(these) == len(those) and all(_same_value(a, b, depth) for a, b in zip(these, those, strict=True))


def _same_value(a: Value, b: Value, depth: int) -> bool:
    if a is b:
        return True
    if depth == _DEPTH or not (isinstance(a, OpResult) and isinstance(b, OpResult)):
        return False
    first, second = a.owner, b.owner
    return (
        first.name == second.name
        and not first.regions
        and a.index == b.index
        and first.attributes == second.attributes
        and _same_values(first.operands, second.operands, depth + 1)
    )

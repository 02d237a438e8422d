"""Functions on operators whose number of results, or whose result's shape, depends on how they are called.

They are composed of operators, so that gradients pass through them although no program can be made of the opaque part.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from typing import Any, NamedTuple

from argosy_phi_ops.declare.composition import composed
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.errors import OperatorError
from argosy_tensorcore.shape import broadcast_shapes
from argosy_tensorcore.tensor import Tensor


def _positions(x: Tensor) -> Tensor:
    payload = x.payload
    found = payload.tracer.positions(x) if payload.is_traced else None
    return get_operator("nonzero")(x) if found is None else found


@composed(out=True)
def nonzero(x: Tensor, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The positions of the elements that are not zero: [count, axes], or with ``as_tuple`` one vector for each axis."""
    found: Any = _positions(x)
    return tuple(found[:, axis] for axis in range(len(x.shape))) if as_tuple else found


@composed(out=True)
def where(
    condition: Tensor, x: Tensor | float | None = None, y: Tensor | float | None = None
) -> Tensor | tuple[Tensor, ...]:
    """``x`` where ``condition`` holds, else ``y``, with broadcasting; without both, the positions where it holds.

    Raises ``ValueError`` when only one of the two is given.
    """
    if (x is None) != (y is None):
        raise ValueError("where() takes both x and y, or neither")
    if x is None:
        return nonzero(condition, as_tuple=True)
    return get_operator("where")(condition, x, y)


@composed(out=True)
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of ``x`` where ``mask`` holds, as a vector; the two broadcast. Its size depends on the values."""
    spread = get_operator("expand")
    if mask.payload.is_traced and not mask.payload.selected:
        shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
        whole, everywhere = (t if tuple(t.shape) == shape else spread(t, shape) for t in (x, mask))
        if (found := mask.payload.tracer.selection(whole, everywhere)) is not None:
            return found
    if x.stop_gradient:
        return get_operator("masked_select")(x, mask)
    shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    positions = get_operator("nonzero")(spread(mask, shape))
    return get_operator("gather_nd")(spread(x, shape), positions)


@composed()
def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """A last axis of ``num_classes`` with 1 at the class and 0 elsewhere; -1 takes the largest class for the last."""
    count = int(get_operator("max")(x)) + 1 if num_classes == -1 else num_classes
    return get_operator("one_hot")(x, count)


@composed()
def sequence_mask(x: Tensor, maxlen: int | None = None, dtype: object = "int64") -> Tensor:
    """For each length in ``x`` a row of ``maxlen`` (by default the greatest length) that is 1 up to there, then 0."""
    count = int(get_operator("max")(x)) if maxlen is None else maxlen
    return get_operator("sequence_mask")(x, count, dtype)


@composed()
def where_(condition: Tensor, x: Tensor | None = None, y: Tensor | float | None = None) -> Tensor:
    """``x`` overwritten by ``y`` where ``condition`` does not hold. Raises :class:`OperatorError` without ``x``."""
    if x is None or y is None:
        raise OperatorError("where_: x, which is overwritten, and y are both needed")
    write(x, get_operator("where")(condition, get_operator("assign")(x), y))
    return x


@composed()
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero: [count, axes]."""
    return _positions(input)


class TopKRetType(NamedTuple):
    """What :func:`topk` gives."""

    values: Tensor
    indices: Tensor


@composed(aliases={"input": "x", "dim": "axis"}, out=True)
def topk(x: Tensor, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True) -> TopKRetType:
    """The ``k`` largest (or smallest) elements along ``axis`` in order, and their indices; of equals the first ones."""
    return TopKRetType(*get_operator("topk")(x, k, axis, largest, sorted))

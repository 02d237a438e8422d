"""Functions on operators whose number of results, or whose result's shape, depends on how they are called.

They are composed of operators, so that gradients pass through them although no program can be made of the opaque part.
"""

from __future__ import annotations

from argosy_phi_ops.operator import get_operator
from argosy_tensorcore.shape import broadcast_shapes
from argosy_tensorcore.tensor import Tensor

__all__ = ["masked_select", "nonzero", "where"]


def nonzero(x: Tensor, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The positions of the elements that are not zero: [count, axes], or with ``as_tuple`` one vector for each axis."""
    found: Tensor = get_operator("nonzero")(x)
    return tuple(found[:, axis] for axis in range(len(x.shape))) if as_tuple else found


def where(
    condition: Tensor, x: Tensor | float | None = None, y: Tensor | float | None = None, name: str | None = None
) -> Tensor | tuple[Tensor, ...]:
    """``x`` where ``condition`` holds, else ``y``, with broadcasting; without both, the positions where it holds.

    Raises ``ValueError`` when only one of the two is given.
    """
    if (x is None) != (y is None):
        raise ValueError("where() takes both x and y, or neither")
    if x is None:
        return nonzero(condition, as_tuple=True)
    return get_operator("where")(condition, x, y)  # type: ignore[no-any-return]


def masked_select(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements of ``x`` where ``mask`` holds, as a vector; the two broadcast. Its size depends on the values."""
    if x.stop_gradient:
        return get_operator("masked_select")(x, mask)  # type: ignore[no-any-return]
    shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    spread = get_operator("expand")
    positions = get_operator("nonzero")(spread(mask, shape))
    return get_operator("gather_nd")(spread(x, shape), positions)  # type: ignore[no-any-return]

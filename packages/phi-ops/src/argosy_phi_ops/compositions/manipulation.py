"""Joining and splitting by named axes, and more axes for tensors that have few."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as chosen
from itertools import combinations_with_replacement, pairwise
from typing import Any

from argosy_phi_ops.declare.call_overloads import sizes_from
from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.errors import AxisError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.shape import broadcast_shapes as common_shape
from argosy_tensorcore.tensor import Tensor


@compose()
def cast_(x: Tensor, dtype: object) -> Tensor:
    """``x`` itself with its elements as ``dtype``."""
    write(x, op("cast")(x, dtype))
    return x


@compose(form=sizes_from(1, 1))
def repeat(input: Tensor, repeats: Sequence[int]) -> Tensor:
    """The whole tensor repeated along each axis, missing axes added in front; ``repeats`` may be given one by one."""
    return op("tile")(input, list(repeats))


def _as_tensor(x: Any) -> Any:
    return x if hasattr(x, "ndim") else Tensor(x)


def _each(inputs: tuple[Any, ...], widen: Any) -> Any:
    """``widen`` of one tensor, or the list of it for several."""
    items = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
    results = [widen(_as_tensor(x)) for x in items]
    return results[0] if len(results) == 1 else results


def _reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    return get_operator("reshape")(x, list(shape))


def _two(x: Tensor) -> Tensor:
    return _reshape(x, [1] * (2 - x.ndim) + list(x.shape)) if x.ndim < 2 else x


def _three(x: Tensor) -> Tensor:
    if x.ndim >= 3:
        return x
    return _reshape(_two(x), [*_two(x).shape, 1])


@compose()
def atleast_1d(*inputs: Tensor, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors with at least one axis; a list for several."""
    return _each(inputs, lambda x: x if x.ndim else _reshape(x, [1]))


@compose()
def atleast_2d(*inputs: Tensor, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors with at least two axes: a vector becomes a row."""
    return _each(inputs, _two)


@compose()
def atleast_3d(*inputs: Tensor, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors with at least three axes: a vector [n] becomes [1, n, 1], a matrix gets a last axis."""
    return _each(inputs, _three)


@compose(out=True, rows=True)
def hstack(x: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along the second axis, vectors one after another."""
    parts = [p if p.ndim else _reshape(p, [1]) for p in x]
    return get_operator("concat")(parts, 0 if parts[0].ndim == 1 else 1)


@compose(out=True, rows=True)
def vstack(x: Sequence[Tensor]) -> Tensor:
    """Tensors on top of each other: along the first axis, vectors as rows."""
    return get_operator("concat")([_two(p) for p in x], 0)


@compose(out=True, rows=True)
def row_stack(x: Sequence[Tensor]) -> Tensor:
    """The same as :func:`vstack`."""
    return vstack(x)


@compose(out=True, rows=True)
def dstack(x: Sequence[Tensor]) -> Tensor:
    """Tensors behind each other, along the third axis."""
    return get_operator("concat")([_three(p) for p in x], 2)


@compose(out=True, rows=True)
def column_stack(x: Sequence[Tensor]) -> Tensor:
    """Tensors along the second axis, vectors as columns."""
    parts = [_reshape(p, [p.size, 1]) if p.ndim < 2 else p for p in x]
    return get_operator("concat")(parts, 1)


@compose(aliases={"indices_or_sections": "num_or_indices", "indices": "num_or_indices", "sections": "num_or_indices"})
def tensor_split(x: Tensor, num_or_indices: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along ``axis``: as many as told, their sizes differing by at most one, or cut at the indices."""
    if not x.ndim:
        raise ShapeError("tensor_split needs a tensor with axes, got a 0-D one")
    at = axis_of("tensor_split", axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_indices, int):
        if num_or_indices < 1:
            raise ShapeError(f"tensor_split: num_or_indices {num_or_indices} should be positive")
        small, larger = divmod(size, num_or_indices)
        cuts = [i * small + min(i, larger) for i in range(num_or_indices + 1)]
    else:
        cuts = [0, *(min(max(i + size if i < 0 else i, 0), size) for i in map(int, num_or_indices)), size]
    part, copy = get_operator("slice"), get_operator("clone")
    return [copy(part(x, [at], [start], [max(start, stop)])) for start, stop in pairwise(cuts)]


def _split_at(name: str, x: Tensor, how: Any, axis: int, least: int) -> Any:
    if x.ndim < least:
        raise ShapeError(f"{name} needs at least {least} axes, got a tensor of shape {list(x.shape)}")
    return tensor_split(x, how, axis)


@compose()
def hsplit(x: Tensor, num_or_indices: int | Sequence[int]) -> list[Tensor]:
    """Parts along the second axis, of a vector along its only one."""
    return _split_at("hsplit", x, num_or_indices, 0 if x.ndim == 1 else 1, 1)


@compose()
def vsplit(x: Tensor, num_or_indices: int | Sequence[int]) -> list[Tensor]:
    """Parts along the first axis of a tensor with two axes or more."""
    return _split_at("vsplit", x, num_or_indices, 0, 2)


@compose()
def dsplit(x: Tensor, num_or_indices: int | Sequence[int]) -> list[Tensor]:
    """Parts along the third axis."""
    return _split_at("dsplit", x, num_or_indices, 2, 3)


@compose()
def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """The slices along ``axis``, which they lose; ``num``, if given, is their number. Copies, unlike those of
    :func:`unbind`."""
    at = axis_of("unstack", axis, x.ndim)
    if num is not None and num != x.shape[at]:
        raise ShapeError(f"unstack: num {num} is not the size of axis {axis} of shape {list(x.shape)}")
    return [get_operator("clone")(part) for part in get_operator("unbind")(x, at)]


@compose(rows=True)
def block_diag(inputs: Sequence[Tensor]) -> Tensor:
    """A matrix with the matrices ``inputs`` along its diagonal and zeros elsewhere; vectors are rows."""
    blocks = [_two(x) for x in inputs]
    if any(b.ndim > 2 for b in blocks):
        raise ShapeError(f"block_diag takes tensors of at most 2 axes, got shapes {[list(b.shape) for b in blocks]}")
    total, left, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        right = total - left - block.shape[1]
        rows.append(get_operator("pad")(block, [0, 0, left, right]))
        left += block.shape[1]
    return get_operator("concat")(rows, 0)


@compose()
def cartesian_prod(x: Sequence[Tensor]) -> Tensor:
    """All combinations of one element of each vector, as rows; of one vector the vector itself."""
    if any(v.ndim != 1 for v in x):
        raise ShapeError(f"cartesian_prod takes vectors, got shapes {[list(v.shape) for v in x]}")
    if len(x) == 1:
        return x[0]
    grid = get_operator("meshgrid")(list(x))
    return get_operator("stack")([_reshape(g, [-1]) for g in grid], -1)


@compose()
def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector, as rows in the order of their positions."""
    if x.ndim != 1:
        raise ShapeError(f"combinations takes a vector, got shape {list(x.shape)}")
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"combinations: r should be a non-negative integer, got {r!r}")
    choose = combinations_with_replacement if with_replacement else chosen
    places = list(choose(range(x.shape[0]), r))
    if not places or not r:
        return get_operator("zeros")([0, r] if r else [0], x.dtype)
    found = get_operator("index_select")(x, Tensor([i for row in places for i in row], "int64"))
    return _reshape(found, [len(places), r])


@compose()
def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape that two shapes broadcast to. Raises ``ValueError`` when they do not."""
    return list(common_shape(tuple(x_shape), tuple(y_shape)))


@compose()
def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """The shape that all the shapes broadcast to. Raises ``ValueError`` when they do not."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        if not isinstance(shape, int) and not hasattr(type(shape), "__iter__"):
            raise TypeError(f"broadcast_shapes(): arguments should be sequences of integers, got {shape!r:.60}")
        result = tuple(common_shape(result, (shape,) if isinstance(shape, int) else tuple(shape)))
    return list(result)


@compose()
def multiplex(inputs: Sequence[Tensor], index: Tensor) -> Tensor:
    """Row i of the result is row i of the tensor ``inputs[index[i]]``."""
    if len(inputs) < 2 or index.ndim > 2:
        found = f"{len(inputs)}, {list(index.shape)}"
        raise ShapeError(f"multiplex takes two tensors or more and an index [n, 1], got {found}")
    rows = _reshape(index, [-1])
    together = get_operator("stack")(list(inputs), 0)
    places = get_operator("stack")([rows, get_operator("arange")(rows.shape[0], dtype=rows.dtype)], 1)
    return get_operator("gather_nd")(together, places)


@compose()
def transpose_(x: Tensor, perm: Sequence[int]) -> Tensor:
    """In-place form of ``transpose``: ``x`` becomes the view."""
    return _rebound(x, get_operator("transpose")(x, perm))


@compose()
def t_(input: Tensor) -> Tensor:
    """In-place form of ``t``."""
    return _rebound(input, get_operator("t")(input))


def _rebound(x: Tensor, view: Tensor) -> Tensor:
    from argosy_phi_ops.eager.dispatch import rebind

    rebind(x, view)
    return x


@compose()
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Parts of those sizes along ``dim``. Raises :class:`AxisError` when they do not add up."""
    at = axis_of("split_with_sizes", dim, self.ndim)
    if sum(split_sizes) != self.shape[at]:
        raise AxisError(f"split_with_sizes: {list(split_sizes)} do not add up to axis {dim} of {list(self.shape)}")
    return list(get_operator("split")(self, list(split_sizes), at))


@compose(form=sizes_from(1, 1))
def permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    """The axes in the order ``dims``, which may be given one by one. A view."""
    return get_operator("transpose")(input, list(dims))


@compose(aliases={"dim": "axis"})
def split(x: Tensor, num_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along ``axis``: that many equal ones, or of those sizes (one may be -1)."""
    return list(get_operator("split")(x, num_or_sections, axis))


@compose(aliases={"input": "x", "dim": "axis"})
def chunk(x: Tensor, chunks: int, axis: int = 0) -> list[Tensor]:
    """At most ``chunks`` parts along ``axis``, all as large as the first but the last."""
    return list(get_operator("chunk")(x, chunks, axis))


@compose(aliases={"dim": "axis"})
def unbind(input: Tensor, axis: int = 0) -> list[Tensor]:
    """The slices along ``axis``, which disappears. Views."""
    return list(get_operator("unbind")(input, axis))


@compose()
def broadcast_tensors(input: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in the shape that all of them broadcast to."""
    return list(get_operator("broadcast_tensors")(input))

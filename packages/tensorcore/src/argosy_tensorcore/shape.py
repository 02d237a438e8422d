"""Arithmetic of shapes and strides (in elements), as sequences of ints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any


class Size(list[Any]):
    """A tensor's shape as Paddle shows it: a list that equals both lists and tuples; slices are Sizes."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        """That of the tuple it equals: libraries keep shapes in sets, and each look at ``shape`` makes a Size."""
        return hash(tuple(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            other = list(other)
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getitem__(self, index: Any) -> Any:
        try:
            found = list.__getitem__(self, index)
        except IndexError:
            raise IndexError(f"a tensor of shape {list(self)} has no axis {index}") from None
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Iterable[Any]) -> Size:
        return Size([*self, *other])

    def __radd__(self, other: Iterable[Any]) -> Size:
        return Size([*other, *self])

    def __repr__(self) -> str:
        return f"paddle.Size({list.__repr__(self)})"

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)


class Count(int):
    """The number of elements of a tensor; called, the tensor's :class:`Size`, or the size of one axis."""

    shape: Sequence[int]

    @staticmethod
    def of_shape(shape: Sequence[Any]) -> Any:
        """The count of a tensor of that shape; an expression where sizes of a program being captured are open."""
        number = prod(shape)
        if type(number) is not int:
            return number
        count = Count(number)
        count.shape = shape
        return count

    def __call__(self, dim: int | None = None) -> Any:
        return Size(self.shape) if dim is None else Size(self.shape)[dim]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # copies and files hold a plain integer


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of shape; axes of size 0 count as 1 so that strides never vanish."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * (shape[axis] or 1)
    return tuple(strides)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True when elements lie in row-major order without gaps; strides of axes of size 1 do not matter."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != expected:
                return prod(shape) == 0
            expected *= size
    return True


def extent(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Lowest and one past the highest element that a view touches, relative to its first; (0, 0) if empty."""
    if 0 in shape:
        return 0, 0
    reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + 1


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to. Raises ValueError naming the shapes and the axis."""
    result = [1] * max((len(shape) for shape in shapes), default=0)
    for shape in shapes:
        for axis, size in enumerate(shape, len(result) - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                shown = " and ".join(str(list(s)) for s in shapes)
                raise ValueError(
                    f"broadcast_shapes(): the arguments, got {shown}, do not broadcast: axis {axis - len(result)} has "
                    f"sizes {result[axis]} and {size}; sizes must be equal or 1"
                )
            result[axis] = size
    return tuple(result)

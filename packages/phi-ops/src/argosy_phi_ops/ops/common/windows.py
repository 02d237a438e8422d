"""Windows along spatial axes: their numbers, paddings and dilations, and the place of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops import prim
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import per_axis
from argosy_pir.dims import maximum
from argosy_tensorcore.tensor import Tensor

Padding = int | str | Sequence[Any]

Pairs = tuple[tuple[Any, Any], ...]


def padding_pairs(
    name: str,
    padding: Padding,
    sizes: Sequence[Any],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    channels_last: bool,
) -> Pairs:
    """(before, after) for each spatial axis of `sizes`.

    `padding` is one number, one for each axis, (before, after) for each axis in a row or as pairs (then for batch and
    channel, too), "VALID" for none, or "SAME" for as much as keeps ``ceil(size / stride)`` outputs.
    """
    if isinstance(padding, str):
        return _padding_by_name(name, padding, sizes, window, strides, dilation)
    pairs = _padding_by_numbers(name, padding, len(sizes), channels_last)
    if any(isinstance(n, int) and n < 0 for pair in pairs for n in pair):
        raise ShapeError(f"{name}(): argument 'padding' should hold no negative numbers, got {padding}")
    return pairs


def _padding_by_numbers(name: str, padding: int | Sequence[Any], rank: int, channels_last: bool) -> Pairs:
    if isinstance(padding, int):
        return ((padding, padding),) * rank
    values = tuple(padding)
    if values and not isinstance(values[0], int):
        pairs = tuple((before, after) for before, after in values)
        return pairs[1:-1] if channels_last else pairs[2:]
    if len(values) in (1, rank):
        return tuple((n, n) for n in per_axis(name, values, rank))
    if len(values) == 2 * rank:
        return tuple((values[2 * i], values[2 * i + 1]) for i in range(rank))
    raise ShapeError(f"{name}: padding {list(values)} does not fit {rank} spatial axes")


def _padding_by_name(
    name: str,
    padding: str,
    sizes: Sequence[Any],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Pairs:
    if padding.upper() == "VALID":
        return ((0, 0),) * len(sizes)
    if padding.upper() != "SAME":
        raise ShapeError(f"{name}: padding {padding!r} is unknown; there are SAME and VALID, and numbers")
    pairs = []
    for n, k, s, d in zip(sizes, window, strides, dilation, strict=True):
        outputs = (n + s - 1) // s
        total = maximum((outputs - 1) * s + (k - 1) * d + 1 - n, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def dilations_of(name: str, dilation: int | Sequence[int], rank: int, padding: Padding) -> tuple[int, ...]:
    """The dilation of each spatial axis; with padding "SAME" windows are not dilated, whatever is asked for, as in
    Paddle (``UpdatePaddingAndDilation``)."""
    dilations = per_axis(name, dilation, rank, "dilation")
    return (1,) * rank if isinstance(padding, str) and padding.upper() == "SAME" else dilations


def channels_first(x: Tensor) -> Tensor:
    """[N, *S, C] as [N, C, *S]."""
    return prim.transpose(x, permutation=(0, x.ndim - 1, *range(1, x.ndim - 1)))


def channels_last(x: Tensor) -> Tensor:
    """[N, C, *S] as [N, *S, C]."""
    return prim.transpose(x, permutation=(0, *range(2, x.ndim), 1))


def window_count(n: Any, pair: tuple[Any, Any], reach: int, stride: int, ceil_mode: bool = False) -> Any:
    """The number of windows of `reach` elements over `n` elements and their padding.

    That is ``(n + before + after - reach) / stride + 1``, with a quotient rounded toward zero, or up with `ceil_mode`:
    an axis shorter than a window by less than the stride has one window, and a last window may start in the padding.
    A symbolic quotient is rounded down, so that sizes stay sums of products: there a shorter axis has no window.
    """
    rest = n + sum(pair) - reach + (stride - 1 if ceil_mode else 0)
    if isinstance(rest, int):
        return (rest // stride if rest >= 0 else -(-rest // stride)) + 1
    return rest // stride + 1


def covering_pair(
    n: Any, pair: tuple[Any, Any], reach: int, stride: int, count: Any, ceil_mode: bool = False
) -> tuple[Any, Any]:
    """The padding with what lies beyond it, where `count` windows reach further."""
    before, after = pair
    needed = (count - 1) * stride + reach - n - before
    if isinstance(needed, int):
        return before, after if isinstance(count, int) and count <= 0 else max(needed, after)
    return before, maximum(needed, after) if ceil_mode else after

"""Numbers of windows along an axis, as Paddle counts them, and the padding that the last window asks for."""

from __future__ import annotations

from typing import Any

from argosy_pir.dims import maximum


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

"""Derivatives of contractions: each operand's cotangent is a contraction of the result's with the other operand."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, argsort, conj, plus
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Axes = tuple[int, ...]
Pair = tuple[Value | None, Value | None]


@vjp("dot_general")
def _(
    g: Value,
    result: Value,
    lhs: Value,
    rhs: Value,
    *,
    lhs_contract: Axes,
    rhs_contract: Axes,
    lhs_batch: Axes,
    rhs_batch: Axes,
    accumulate: str,
) -> Pair:
    if g.dtype != lhs.dtype:  # summed in a wider dtype: the products back are of the operands' dtype again
        g = prim.cast(g, dtype=lhs.dtype)
    batch = tuple(range(len(lhs_batch)))
    free_lhs, free_rhs = _free_axes(lhs, lhs_contract, lhs_batch), _free_axes(rhs, rhs_contract, rhs_batch)
    rows = tuple(range(len(batch), len(batch) + len(free_lhs)))
    columns = tuple(range(len(batch) + len(free_lhs), g.ndim))
    g_lhs = _cotangent(g, batch, columns, rhs, rhs_batch, free_rhs, rhs_contract, lhs_batch, free_lhs, lhs_contract)
    g_rhs = _cotangent(g, batch, rows, lhs, lhs_batch, free_lhs, lhs_contract, rhs_batch, free_rhs, rhs_contract)
    return g_lhs, g_rhs


def _free_axes(x: Value, contract: Axes, batch: Axes) -> Axes:
    return tuple(i for i in range(x.ndim) if i not in contract and i not in batch)


def _cotangent(
    g: Value,
    g_batch: Axes,
    g_contract: Axes,
    other: Value,
    other_batch: Axes,
    other_free: Axes,
    other_contract: Axes,
    own_batch: Axes,
    own_free: Axes,
    own_contract: Axes,
) -> Value:
    """The cotangent of one operand ("own"): g contracted with the other operand over the other's free axes.

    Of the two orders of operands the one whose result needs no transposition is taken, where there is one.
    """
    other = conj(other)
    paired = tuple(own_contract[i] for i in argsort(other_contract))  # own axes, in the order the other's axes come out
    g_first = argsort((*own_batch, *own_free, *paired))
    other_first = argsort((*own_batch, *paired, *own_free))
    if other_first == tuple(range(len(other_first))) != g_first:
        return prim.dot_general(
            other, g, lhs_contract=other_free, rhs_contract=g_contract, lhs_batch=other_batch, rhs_batch=g_batch
        )
    made = prim.dot_general(
        g, other, lhs_contract=g_contract, rhs_contract=other_free, lhs_batch=g_batch, rhs_batch=other_batch
    )
    return made if g_first == tuple(range(len(g_first))) else prim.transpose(made, permutation=g_first)


@jvp("dot_general")
def _(
    result: Value, lhs: Value, rhs: Value, d_lhs: Value | None, d_rhs: Value | None, **attributes: Any
) -> Value | None:
    left = None if d_lhs is None else prim.dot_general(d_lhs, rhs, **attributes)
    return plus(left, None if d_rhs is None else prim.dot_general(lhs, d_rhs, **attributes))


# Convolution. N batch, C input channels, O output channels, S input and T output sizes, K window sizes; G groups.


@vjp("conv")
def _(
    g: Value,
    result: Value,
    x: Value,
    w: Value,
    *,
    strides: Axes,
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: Axes,
    rhs_dilation: Axes,
    groups: int,
) -> Pair:
    spread = [
        (_dilated_size(n, a), _dilated_size(k, b), _dilated_size(m, s))
        for n, k, m, a, b, s in zip(
            x.shape[2:], w.shape[2:], g.shape[2:], lhs_dilation, rhs_dilation, strides, strict=True
        )
    ]
    around_x = tuple(_around_x(n, k, m, low) for (n, k, m), (low, _) in zip(spread, padding, strict=True))
    gx = prim.conv(
        g,
        _exchange_channels(conj(w), groups),
        strides=lhs_dilation,
        padding=around_x,
        lhs_dilation=strides,
        rhs_dilation=rhs_dilation,
        groups=groups,
    )
    around_w = tuple((low, m - n + k - low - 1) for (n, k, m), (low, _) in zip(spread, padding, strict=True))
    gw = prim.conv(
        _channels_as_batch(conj(x), groups),
        _swap_leading(g),
        strides=rhs_dilation,
        padding=around_w,
        lhs_dilation=lhs_dilation,
        rhs_dilation=strides,
        groups=groups,
    )
    return gx, _swap_leading(gw)


def _dilated_size(size: Any, dilation: int) -> Any:
    return (size - 1) * dilation + 1


def _around_x(n: Any, k: Any, m: Any, low: int) -> tuple[Any, Any]:
    before = k - low - 1
    return before, n + k - 1 - m - before


def _swap_leading(x: Value) -> Value:
    return prim.transpose(x, permutation=(1, 0, *range(2, x.ndim)))


def _exchange_channels(w: Value, groups: int) -> Value:
    """[G O', C', *K] to [G C', O', *K], windows turned round."""
    outputs, channels, *window = w.shape
    turned = prim.reverse(w, axes=tuple(range(2, w.ndim)))
    if groups == 1:
        return _swap_leading(turned)
    split = prim.reshape(turned, shape=(groups, outputs // groups, channels, *window))
    swapped = prim.transpose(split, permutation=(0, 2, 1, *range(3, split.ndim)))
    return prim.reshape(swapped, shape=(groups * channels, outputs // groups, *window))


def _channels_as_batch(x: Value, groups: int) -> Value:
    """[N, G C', *S] to [C', G N, *S]."""
    if groups == 1:
        return _swap_leading(x)
    batch, channels, *spatial = x.shape
    split = prim.reshape(x, shape=(batch, groups, channels // groups, *spatial))
    moved = prim.transpose(split, permutation=(2, 1, 0, *range(3, split.ndim)))
    return prim.reshape(moved, shape=(channels // groups, groups * batch, *spatial))


@jvp("conv")
def _(result: Value, x: Value, w: Value, dx: Value | None, dw: Value | None, **attributes: Any) -> Value | None:
    by_x = None if dx is None else prim.conv(dx, w, **attributes)
    return plus(by_x, None if dw is None else prim.conv(x, dw, **attributes))

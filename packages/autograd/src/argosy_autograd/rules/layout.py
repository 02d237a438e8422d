"""Derivatives of the primitives that move elements: each is linear, and its transpose moves them back."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, argsort, zeros, zeros_like
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Shape = tuple[Any, ...]


def _register_linear(name: str) -> None:
    """The tangent goes the way of the value."""
    function = getattr(prim, name)
    jvp.add(name, lambda result, x, dx, **attributes: function(dx, **attributes))


for _name in ("broadcast", "reshape", "transpose", "slice", "reverse", "place"):
    _register_linear(_name)


@vjp("broadcast")
def _(g: Value, result: Value, x: Value, *, shape: Shape, axes: Shape) -> Value:
    stretched = {axis for size, axis in zip(x.shape, axes, strict=True) if size == 1 and shape[axis] != 1}
    summed = tuple(i for i in range(len(shape)) if i not in axes or i in stretched)
    if summed:
        g = prim.reduce_sum(g, axes=summed)
    return prim.reshape(g, shape=x.shape) if stretched else g


@vjp("reshape")
def _(g: Value, result: Value, x: Value, *, shape: Shape) -> Value:
    return prim.reshape(g, shape=x.shape)


@vjp("transpose")
def _(g: Value, result: Value, x: Value, *, permutation: Shape) -> Value:
    return prim.transpose(g, permutation=argsort(permutation))


@vjp("slice")
def _(g: Value, result: Value, x: Value, *, start: Shape, limit: Shape, stride: Shape) -> Value:
    covered = [_cover(n, step) for n, step in zip(g.shape, stride, strict=True)]
    high = tuple(n - lo - c for n, lo, c in zip(x.shape, start, covered, strict=True))
    zero = prim.constant(0, x.dtype)
    return prim.pad(g, zero, low=start, high=high, interior=tuple(step - 1 for step in stride))


def _cover(count: Any, step: int) -> Any:
    return (count - 1) * step + 1 if step != 1 and count != 0 else count


@vjp("pad")
def _(g: Value, result: Value, x: Value, value: Value, *, low: Shape, high: Shape, interior: Shape) -> Any:
    cropped = [isinstance(n, int) and n < 0 for n in (*low, *high)]
    if any(cropped):
        below, above = (tuple(-n if isinstance(n, int) and n < 0 else 0 for n in side) for side in (low, high))
        g_x = prim.pad(g, prim.constant(0, g.dtype), low=below, high=above, interior=(0,) * g.ndim)
        low, high = (tuple(0 if isinstance(n, int) and n < 0 else n for n in side) for side in (low, high))
    else:
        g_x = g
    limit = tuple(n - hi for n, hi in zip(g_x.shape, high, strict=True))
    steps = tuple(gap + 1 for gap in interior)
    if any(low) or any(high) or any(interior):
        g_x = prim.slice(g_x, start=low, limit=limit, stride=steps)
    every = tuple(range(g.ndim))
    padded = prim.reduce_sum(g, axes=every) - prim.reduce_sum(g_x, axes=every)
    return g_x, padded


@jvp("pad")
def _(result: Value, x: Value, value: Value, dx: Value | None, dvalue: Value | None, **attributes: Any) -> Value:
    return prim.pad(zeros_like(x) if dx is None else dx, zeros((), x.dtype) if dvalue is None else dvalue, **attributes)


@vjp("concat")
def _(g: Value, result: Value, *xs: Value, axis: int) -> tuple[Value, ...]:
    parts, at = [], 0
    stride = (1,) * g.ndim
    for x in xs:
        end = at + x.shape[axis]
        start = tuple(at if i == axis else 0 for i in range(g.ndim))
        limit = tuple(end if i == axis else n for i, n in enumerate(g.shape))
        parts.append(prim.slice(g, start=start, limit=limit, stride=stride))
        at = end
    return tuple(parts)


@jvp("concat")
def _(result: Value, *xs: Value | None, axis: int) -> Value:
    count = len(xs) // 2
    pairs = zip(xs[:count], xs[count:], strict=True)
    return prim.concat(*[zeros_like(x) if dx is None and x is not None else dx for x, dx in pairs], axis=axis)


@vjp("reverse")
def _(g: Value, result: Value, x: Value, *, axes: Shape) -> Value:
    return prim.reverse(g, axes=axes)


@vjp("relayout")
def _(g: Value, result: Value, x: Value, *like: Value, target: str) -> tuple[Value | None, ...]:
    return (prim.relayout(g, x), *[None for _ in like])  # the cotangent goes where the operand is


@vjp("place")
def _(g: Value, result: Value, x: Value, *, source: str, target: str) -> Value:
    return prim.place(g, source=target, target=source)


@vjp("to_local")
def _(g: Value, result: Value, x: Value, *like: Value, target: str, shape: Shape) -> tuple[Value | None, ...]:
    """The parts of a cotangent make one for the whole."""
    whole = prim.from_local(g, *([] if target else [x]), target=target, shape=x.shape)
    return (whole, *[None for _ in like])


@vjp("from_local")
def _(g: Value, result: Value, x: Value, *like: Value, target: str, shape: Shape) -> tuple[Value | None, ...]:
    return (prim.to_local(g, result, shape=x.shape), *[None for _ in like])


def _parts(name: str) -> None:
    def rule(result: Value, x: Value, *rest: Value | None, **attributes: Any) -> Value | None:
        dx, like = rest[len(rest) // 2], rest[: len(rest) // 2]
        return None if dx is None else getattr(prim, name)(dx, *like, **attributes)

    jvp.add(name, rule)


for _name in ("to_local", "from_local"):
    _parts(_name)


@jvp("relayout")
def _(result: Value, x: Value, *rest: Value | None, target: Shape) -> Value | None:
    dx, like = rest[len(rest) // 2], rest[: len(rest) // 2]
    return None if dx is None else prim.relayout(dx, *like, target=target)

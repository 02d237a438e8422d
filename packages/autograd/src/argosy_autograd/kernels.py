"""Hand-written eager derivatives of the most frequent operators, on arrays.

Each is an optimisation of what :mod:`argosy_autograd.derivatives` gives for the operator anyway, and a test
compares the two, bit for bit where the derived program is exact, which takes over when it is hot. A kernel keeps at
least what the derived program reads, so that derivatives of higher order, which use that, find it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from argosy_phi_ops.reference import attention

__all__ = ["KERNELS", "EagerKernel"]

Array = np.ndarray[Any, Any]
Saved = dict[int, Any]
_WIDE = frozenset({"float32", "float64"})
_FLAT = 1600.0  # the square from which on gelu by tanh is 0 or x


class EagerKernel:
    """``keeps(wants)`` gives the positions in (operands..., results...) to keep for the operands that want gradients;
    ``run(grads, saved, attributes, key)`` the gradients of all operands (None where not wanted)."""

    __slots__ = ("alike", "keeps", "run")

    def __init__(self, keeps: Callable[[tuple[bool, ...]], tuple[int, ...]], run: Callable[..., Any]) -> None:
        self.keeps = keeps
        self.run = run
        self.alike: Callable[..., Any] | None = None

    def run_for(self, types: Sequence[Any]) -> Callable[..., Any]:
        """The quickest form of ``run``: ``alike`` where two operands of one type need no sum over repeated axes."""
        return self.alike if self.alike is not None and types[0] == types[1] else self.run

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Whether it is for operands of these (dtype, shape): tensors of one wide real dtype. Promotion and
        rounding are left to the derived program."""
        first = types[0]
        if type(first) is not tuple or first[0].name not in _WIDE or attributes.get("dtype") is not None:
            return False
        return all([type(kind) is tuple and kind[0] is first[0] for kind in types[1:]])


KERNELS: dict[str, EagerKernel] = {}
"""By operator name."""


def _kernel(name: str, keeps: Callable[[tuple[bool, ...]], tuple[int, ...]]) -> Callable[..., Any]:
    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[name] = EagerKernel(keeps, run)
        return run

    return register


def _no_gradients(wants: tuple[bool, ...]) -> tuple[int, ...]:
    return ()


_OTHER = {(True, True): (0, 1), (True, False): (1,), (False, True): (0,)}


def _other_operands(wants: tuple[bool, ...]) -> tuple[int, ...]:
    """For a product: the operands that are multiplied with the gradients that are wanted."""
    return _OTHER[wants]  # type: ignore[index]


def _shape(key: Any, operand: int) -> tuple[int, ...]:
    found: tuple[int, ...] = key[1][operand][1]
    return found


def _array(saved: Saved, position: int) -> Array:
    found: Array = saved[position].ndarray
    return found


def _reduce(g: Array, shape: tuple[int, ...]) -> Array:
    """``g`` summed over the axes along which an operand of ``shape`` was repeated."""
    if g.shape == shape:
        return g
    extra = g.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1)
    return np.asarray(g.sum(axis=axes)).reshape(shape)


@_kernel("add", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    g, (x, y) = grads[0], key[3]
    return _reduce(g, _shape(key, 0)) if x else None, _reduce(g, _shape(key, 1)) if y else None


def _same_shape_kernel(name: str) -> Callable[..., Any]:
    """Decorator: the form of a kernel for two operands of one shape."""

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[name].alike = run
        return run

    return register


@_same_shape_kernel("add")
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    g, (x, y) = grads[0], key[3]
    return g if x else None, g if y else None


@_kernel("subtract", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    g, (x, y) = grads[0], key[3]
    return _reduce(g, _shape(key, 0)) if x else None, np.negative(_reduce(g, _shape(key, 1))) if y else None


@_kernel("multiply", _other_operands)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    g, (x, y) = grads[0], key[3]
    return (
        _reduce(g * _array(saved, 1), _shape(key, 0)) if x else None,
        _reduce(g * _array(saved, 0), _shape(key, 1)) if y else None,
    )


@_same_shape_kernel("multiply")
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    g = grads[0]
    return (
        np.asarray(g * saved[1].ndarray) if 1 in saved else None,
        np.asarray(g * saved[0].ndarray) if 0 in saved else None,
    )


@_kernel("divide", lambda wants: (1, 2) if wants[1] else (1,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    (x, y) = key[3]
    with np.errstate(all="ignore"):
        over = grads[0] / _array(saved, 1)
        return (
            _reduce(over, _shape(key, 0)) if x else None,
            _reduce(-(over * _array(saved, 2)), _shape(key, 1)) if y else None,
        )


@_kernel("relu", lambda wants: (0,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    g = grads[0]
    return (np.where(_array(saved, 0) <= 0, g.dtype.type(0), g),)  # no product: zeros have no sign, infinities go


@_kernel("tanh", lambda wants: (1,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    y = _array(saved, 1)
    return (grads[0] * (1 - y * y),)


@_kernel("sigmoid", lambda wants: (1,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    y = _array(saved, 1)
    return (grads[0] * (y * (1 - y)),)


def _spread_reduction(g: Array, shape: tuple[int, ...], axis: Any) -> Array:
    if axis is None or axis == () or axis == []:
        axes: tuple[int, ...] = tuple(range(len(shape)))
    else:
        axes = tuple(a % len(shape) for a in ((axis,) if isinstance(axis, int) else axis)) if shape else ()
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return np.broadcast_to(g.reshape(kept), shape)


@_kernel("mean", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    shape = _shape(key, 0)
    g = grads[0]
    size = int(np.prod(shape, dtype=np.int64)) // max(g.size, 1)
    return (_spread_reduction(g / g.dtype.type(size), shape, attributes["axis"]),)


@_kernel("sum", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    return (_spread_reduction(grads[0], _shape(key, 0), attributes["axis"]),)


@_kernel("reshape", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    return (grads[0].reshape(_shape(key, 0)),)


def _product(x: Array, y: Array) -> Array:
    made: Array = np.matmul(x, y)
    return made


@_kernel("matmul", _other_operands)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> Any:
    """Only for operands of two axes or more: see :meth:`_MatmulKernel.fits`."""
    g, (x, y) = grads[0], key[3]
    tx, ty = attributes["transpose_x"], attributes["transpose_y"]
    gx = gy = None
    if x:
        other = _array(saved, 1)
        right = other if ty else other.swapaxes(-1, -2)
        gx = _product(right.swapaxes(-1, -2), g.swapaxes(-1, -2)) if tx else _product(g, right)
        gx = _reduce(gx, _shape(key, 0))
    if y:
        gy = _right_gradient(g, _array(saved, 0), tx, ty, _shape(key, 1))
    return gx, gy


def _right_gradient(g: Array, x: Array, tx: bool, ty: bool, shape: tuple[int, ...]) -> Array:
    if len(shape) == 2 and x.ndim > 2 and not tx:  # one matrix for all rows: one product over all of them
        x, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    left = x if tx else x.swapaxes(-1, -2)
    made = _product(g.swapaxes(-1, -2), left.swapaxes(-1, -2)) if ty else _product(left, g)
    return _reduce(made, shape)


class _MatmulKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Vectors are left to the derived program."""
        return super().fits(types, attributes) and len(types[0][1]) >= 2 and len(types[1][1]) >= 2


KERNELS["matmul"] = _MatmulKernel(KERNELS["matmul"].keeps, KERNELS["matmul"].run)


@_kernel("linear", lambda wants: (*((0,) if wants[1] else ()), *((1,) if wants[0] else ())))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> Any:
    g, wants = grads[0], key[3]
    flat = g.reshape(-1, g.shape[-1])
    gx = _product(flat, _array(saved, 1).T).reshape(_shape(key, 0)) if wants[0] else None
    gw = None
    if wants[1]:
        x = _array(saved, 0)
        gw = _product(x.reshape(-1, x.shape[-1]).T, flat)
    if len(wants) == 2:
        return gx, gw
    return gx, gw, flat.sum(axis=0).reshape(_shape(key, 2)) if wants[2] else None


@_kernel("transpose", _no_gradients)
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    order = [p % grads[0].ndim for p in attributes["perm"]]
    return (grads[0].transpose(np.argsort(order)),)


@_kernel("softmax", lambda wants: (1,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    y, g, axis = _array(saved, 1), grads[0], attributes["axis"]
    weighted = g * y
    return (np.subtract(weighted, y * weighted.sum(axis, keepdims=True), out=weighted),)


class _SoftmaxKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Of tensors with axes, in their own dtype."""
        return super().fits(types, attributes) and types[0][1] != () and attributes["dtype"] is None


class _CrossEntropyKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """The mean over class indices along the last axis, and nothing out of the ordinary."""
        if len(types) != 2 or any(type(kind) is not tuple for kind in types):
            return False
        (dtype, shape), (label_dtype, label_shape) = types
        ordinary = attributes["reduction"] == "mean" and attributes["use_softmax"] and not attributes["soft_label"]
        last = attributes["axis"] in (-1, len(shape) - 1) and not attributes["label_smoothing"]
        indices = label_dtype.kind in "iu" and label_shape == shape[:-1]
        return bool(ordinary and last and indices and dtype.name in _WIDE)


@_kernel("cross_entropy", lambda wants: (0, 1))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array, None]:
    x, label = _array(saved, 0), _array(saved, 1).reshape(-1)
    rows = x.reshape(-1, x.shape[-1])
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    valid = label != attributes["ignore_index"]
    count = len(label) if attributes["ignore_index"] < 0 else max(int(np.count_nonzero(valid)), 1)
    powers /= powers.sum(axis=1, keepdims=True)
    powers[np.arange(len(label)), np.where(valid, label, 0)] -= 1
    powers *= (valid * (grads[0] / count)).astype(x.dtype)[:, None]
    return powers.reshape(x.shape), None


@_kernel("gelu", lambda wants: (0,))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    """By tanh: ``0.5 (1 + tanh u) = s = 1 / (1 + exp(-2 u))`` with ``2 u = a x + b x^3``, where nothing cancels, and
    ``d/dx x s = s + s (1 - s) x (a + 3 b x^2)``."""
    x = _array(saved, 0)
    a, b = 2 * sqrt(2 / pi), 2 * sqrt(2 / pi) * 0.044715
    with np.errstate(all="ignore"):
        square = x * x
        np.minimum(square, _FLAT, out=square)
        s = square * -b
        s -= a
        s *= x
        np.exp(s, out=s)
        s += 1
        np.divide(1, s, out=s)
        square *= 3 * b
        square += a
        slope = 1 - s
        slope *= s
        slope *= x
        slope *= square
        slope += s
        slope *= grads[0]
    return (slope,)


class _GeluKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """By tanh, of tensors with axes."""
        return super().fits(types, attributes) and types[0][1] != () and attributes["approximate"] is True


@_kernel("layer_norm", lambda wants: (*((0,) if wants[0] or wants[1] else ()), *((1,) if wants[0] else ())))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> Any:
    """Over rows: with ``h`` the standardised ``x`` and ``r`` what it was scaled by, ``r (v - mean v - h mean(v h))``
    for ``v = g w``."""
    wants = key[3]
    size = _shape(key, 1)[0]
    g = grads[0].reshape(-1, size)
    gx = gw = None
    with np.errstate(all="ignore"):
        if wants[0] or wants[1]:
            x = _array(saved, 0).reshape(-1, size)
            h = x - x.mean(axis=1, keepdims=True)
            r = 1 / np.sqrt(np.einsum("ij,ij->i", h, h)[:, None] / size + x.dtype.type(attributes["epsilon"]))
            h *= r
        if wants[1]:
            gw = np.einsum("ij,ij->j", g, h)
        if wants[0]:
            v = g * _array(saved, 1)
            along = np.einsum("ij,ij->i", v, h)[:, None] / size
            v -= v.mean(axis=1, keepdims=True)
            h *= along
            v -= h
            v *= r
            gx = v.reshape(_shape(key, 0))
    return gx, gw, g.sum(axis=0) if wants[2] else None


class _LayerNormKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Over the last axis, with weight and bias as vectors."""
        if len(types) != 3 or not super().fits(types, attributes) or len(types[0][1]) < 1:
            return False
        sizes = types[0][1][-1:]
        given = attributes["normalized_shape"]
        over_last = ((given,) if isinstance(given, int) else tuple(given)) == sizes
        return bool(over_last and types[1][1] == types[2][1] == sizes and sizes[0] > 0)


@_kernel("scaled_dot_product_attention", lambda wants: (0, 1, 2))
def _(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> Any:
    query, keys, value = (_array(saved, i) for i in range(3))
    scale = attention.scale_of(query, attributes)
    return attention.gradients(grads[0], query, keys, value, scale, attributes["is_causal"], key[3])


class _AttentionKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Without a mask of its own and groups of heads."""
        plain = super().fits(types, attributes)
        return plain and attention.fits([shape for _, shape in types], types[0][0].name, attributes)


_SPECIAL = {
    "scaled_dot_product_attention": _AttentionKernel,
    "gelu": _GeluKernel, "layer_norm": _LayerNormKernel, "softmax": _SoftmaxKernel,
    "cross_entropy": _CrossEntropyKernel,
}  # fmt: skip
for _name, _kind in _SPECIAL.items():
    KERNELS[_name] = _kind(KERNELS[_name].keeps, KERNELS[_name].run)

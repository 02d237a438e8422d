"""Derivatives of functions and of computed tensors as whole matrices: ``jacobian``, ``hessian``, ``vjp``, ``jvp``.

What does not depend on an input has zeros as its derivative here, as in Paddle. With ``strict=True`` that is an
:class:`UnusedInput` error, which names the order of the derivative, the line that asks, and the operation in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_autograd import anomaly
from argosy_autograd.engine import dependence, grad
from argosy_autograd.errors import DifferentiationError, asked_for, unused_input
from argosy_autograd.modes import enable_grad, is_grad_enabled, linear
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Jacobian", "hessian", "jacobian", "jvp", "vjp"]

Tensors = Tensor | Sequence[Tensor]


class Jacobian:
    """The matrix of first derivatives of ``y`` with respect to ``x``, computed row by row when indexed.

    Its shape is [*y.shape, *x.shape]; with ``batch_axis`` 0, [batch, *rest of y.shape, *rest of x.shape], where
    sample b of y depends on sample b of x alone. Rows stay in the graph, so they can be differentiated again.
    """

    def __init__(self, y: Tensor, x: Tensor, batch_axis: int | None = None) -> None:
        if batch_axis not in (None, 0):
            raise ValueError(f"batch_axis is None or 0, got {batch_axis!r}")
        if batch_axis == 0 and (not y.ndim or not x.ndim or y.shape[0] != x.shape[0]):
            raise ValueError(f"batch_axis=0 needs equal first axes, got y {list(y.shape)} and x {list(x.shape)}")
        for name, t in (("ys", y), ("xs", x)):
            _check_floating("jacobian()", name, t)
        self._y = y
        self._x = x
        self._batch = 0 if batch_axis is None else 1
        self._rows: dict[int, Tensor] = {}
        self._full: Tensor | None = None

    @property
    def shape(self) -> list[int]:
        """The shape of the whole matrix."""
        k = self._batch
        return [*self._y.shape[:k], *self._y.shape[k:], *self._x.shape[k:]]

    def row(self, number: int) -> Tensor:
        """The derivative of element ``number`` of y (counted in row-major order, within each sample), shaped as x."""
        found = self._rows.get(number)
        if found is None:
            found = self._rows[number] = self._row(number)
        return found

    def _row(self, number: int) -> Tensor:
        shape = tuple(self._y.shape)
        lead, size = (prod(shape[: self._batch]), prod(shape[self._batch :]))
        seed = np.zeros((lead, size), self._y.dtype.numpy)
        seed[:, number] = 1
        start = Tensor._wrap(StridedArray(seed.reshape(shape)))
        (g,) = grad(self._y, self._x, start, create_graph=True, allow_unused=True)
        return get_operator("zeros_like")(self._x) if g is None else g

    def evaluate(self) -> Tensor:
        """The whole matrix."""
        if self._full is None:
            rows = [self.row(i) for i in range(prod(self._y.shape[self._batch :]))]
            joined = get_operator("stack")(rows, axis=self._batch)
            self._full = get_operator("reshape")(joined, self.shape)
        return self._full

    def __getitem__(self, index: Any) -> Tensor:
        if self._batch == 0 and self._y.ndim == 1:
            first, rest = (index[0], index[1:]) if isinstance(index, tuple) and index else (index, ())
            if isinstance(first, int):
                row = self.row(range(self._y.shape[0])[first])
                return row[rest] if rest else row
        return self.evaluate()[index]

    def numpy(self) -> Any:
        """The whole matrix as an ndarray."""
        return self.evaluate().numpy()

    def __repr__(self) -> str:
        return f"Jacobian(shape={self.shape})"


def jacobian(ys: Tensors, xs: Tensors, batch_axis: int | None = None, *, strict: bool = False) -> Any:
    """The :class:`Jacobian` of computed tensors; sequences of ys or xs give (nested) tuples.

    With ``strict`` raises :class:`UnusedInput` where one of ``ys`` depends on none of ``xs``, or none of them on one
    of ``xs``. Returns a Jacobian, or a tuple of them for a sequence ``ys`` or ``xs``, a tuple of tuples for two.
    """
    _check_tensors("jacobian()", "ys", ys)
    _check_tensors("jacobian()", "xs", xs)
    if strict:
        check_dependence("jacobian()", _as_list(ys), _as_list(xs))
    if type(ys) is not Tensor:
        return tuple(jacobian(y, xs, batch_axis) for y in ys)
    if type(xs) is not Tensor:
        return tuple(Jacobian(ys, x, batch_axis) for x in xs)
    return Jacobian(ys, xs, batch_axis)


def hessian(ys: Tensor, xs: Tensors, batch_axis: int | None = None, *, strict: bool = False) -> Any:
    """The :class:`Jacobian` of the gradient of a scalar ``ys`` (with ``batch_axis`` 0: of one scalar for each
    sample); sequences of xs give nested tuples.

    With ``strict`` raises :class:`UnusedInput` where ``ys`` or its gradient does not depend on ``xs``: the second
    derivative of a linear function is such a one. Integers raise :class:`DifferentiationError`.
    Returns a Jacobian, or a tuple of tuples of them for a sequence ``xs``.
    """
    if not isinstance(ys, Tensor):
        raise TypeError(f"hessian(): argument 'ys' must be a Tensor, got {ys!r:.60}")
    _check_tensors("hessian()", "xs", xs)
    size = prod(ys.shape[0 if batch_axis is None else 1 :])
    if size != 1:
        raise DifferentiationError(f"a hessian is that of a scalar, ys has shape {list(ys.shape)}")
    points = _as_list(xs)
    for name, t in (("ys", ys), *(("xs", x) for x in points)):
        _check_floating("hessian()", name, t)
    if strict:
        check_dependence("hessian()", [ys], points)
    found = grad(ys, points, create_graph=True, allow_unused=True)
    zeros = get_operator("zeros_like")
    gradients = [zeros(x) if g is None else g for g, x in zip(found, points, strict=True)]
    if strict:
        check_dependence("hessian()", gradients, points)
    if type(xs) is Tensor:
        return Jacobian(gradients[0], xs, batch_axis)
    return tuple(tuple(Jacobian(g, x, batch_axis) for x in points) for g in gradients)


def vjp(func: Callable[..., Any], xs: Tensors, v: Any = None, *, strict: bool = False) -> tuple[Any, Any]:
    """Outputs of ``func`` at ``xs``, and the product of ``v`` (ones by default) with its derivative.

    Both stay in the graph of ``xs``, ``v`` and what ``func`` reads, so that products can be nested. With ``strict``
    raises :class:`UnusedInput` where an output depends on no input, or no output on one of them.
    """
    inputs, outputs = _call(func, xs)
    ends = _as_list(outputs)
    if strict:
        check_dependence("vjp()", ends, inputs)
    seeds = None if v is None else _as_list(v)
    found = grad(ends, inputs, seeds, create_graph=is_grad_enabled(), allow_unused=True)
    zeros = get_operator("zeros_like")
    results = [zeros(x) if g is None else g for g, x in zip(found, inputs, strict=True)]
    return outputs, results[0] if type(xs) is Tensor else results


def jvp(func: Callable[..., Any], xs: Tensors, v: Any = None, *, strict: bool = False) -> tuple[Any, Any]:
    """Outputs of ``func`` at ``xs``, and the product of its derivative with ``v`` (ones by default).

    Both stay in the graph, as those of :func:`vjp`, and ``strict`` means the same. Reverse mode twice: the gradient is
    linear in its seed, so its own gradient with respect to the seed is the product. Raises
    :class:`DifferentiationError` where a :class:`PyLayer` gives a gradient that is cut off from its seed.
    """
    inputs, outputs = _call(func, xs)
    ends = _as_list(outputs)
    if strict:
        check_dependence("jvp()", ends, inputs)
    seeds = [get_operator("zeros_like")(y).detach() for y in ends]
    for seed in seeds:
        seed.stop_gradient = False
    asked = linear.set(lambda: anomaly.describe_request(ends))
    try:
        found = grad(ends, inputs, seeds, create_graph=True, allow_unused=True)
    finally:
        linear.reset(asked)
    directions = [get_operator("ones_like")(x) for x in inputs] if v is None else _as_list(v)
    moved = [(g, d) for g, d in zip(found, directions, strict=True) if g is not None and not g.stop_gradient]
    products: list[Tensor | None] = [None] * len(seeds)
    if moved:
        ends_moved, along = [g for g, _ in moved], [d for _, d in moved]
        products = grad(ends_moved, seeds, along, create_graph=is_grad_enabled(), allow_unused=True)
    results = [get_operator("zeros_like")(y) if p is None else p for p, y in zip(products, ends, strict=True)]
    return outputs, results[0] if type(outputs) is Tensor else results


def check_dependence(function: str, ys: Sequence[Tensor], xs: Sequence[Tensor]) -> None:
    """Raise :class:`UnusedInput` where one of ``ys`` depends on none of ``xs``, or none of them on one of ``xs``."""
    table = [[dependence(y, x) for x in xs] for y in ys]
    for i, row in enumerate(table):
        if not any(depends for depends, _, _ in row):
            raise _independent(f"{function}: output {i} does not depend on the inputs", xs[0], row[0])
    for j, x in enumerate(xs):
        if not any(row[j][0] for row in table):
            raise _independent(f"{function}: the outputs do not depend on input {j}", x, table[0][j])


def _independent(start: str, x: Tensor, found: tuple[bool, str, str]) -> Exception:
    _, asked, blocker = found
    return unused_input(start, x, asked, blocker, "without strict=True its derivative is zero")


def _check_tensors(function: str, name: str, given: object) -> None:
    if not isinstance(given, (Tensor, list, tuple)) or not all(isinstance(x, Tensor) for x in _as_list(given)):
        raise TypeError(f"{function}: argument {name!r} must be a Tensor or a sequence of Tensors, got {given!r:.60}")


def _check_floating(function: str, name: str, x: Tensor, order: int = 1) -> None:
    if x.dtype.kind not in "fc":
        raise DifferentiationError(
            f"{function}: {name} is a tensor of {x.dtype.name}, which has no derivatives: cast it before computing "
            f"with it; {asked_for(order)}"
        )


def _call(func: Callable[..., Any], xs: Tensors) -> tuple[list[Tensor], Any]:
    if not callable(func):
        raise TypeError(f"jvp() or vjp(): argument 'func' must be a function of tensors, got {func!r:.60}")
    for i, x in enumerate(_as_list(xs)):
        _check_floating("jvp() or vjp()", f"input {i}", x)
    inputs = [_differentiable_copy(x) for x in _as_list(xs)]
    with enable_grad():
        return inputs, func(*inputs)


def _differentiable_copy(x: Tensor) -> Tensor:
    """A copy of ``x`` to differentiate by; in its graph where it has one, for derivatives of the result."""
    made: Tensor = x.detach() if x.stop_gradient or not is_grad_enabled() else get_operator("assign")(x)
    if made.payload.is_traced:
        made.payload.active = True
    made.stop_gradient = False
    return made


def _as_list(values: Any) -> list[Any]:
    return [values] if type(values) is Tensor else list(values)

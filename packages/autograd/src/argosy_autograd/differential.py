"""Differential operators of computed tensors: ``laplacian``, ``divergence``, ``curl``, ``biharmonic``,
``linear_operator``.

The points are the rows of ``xs`` [*rows, d] (d coordinates); the values ``ys`` are one for each point, [*rows], or
several, [*rows, m], and those of a point depend on that point alone. Results stay in the graph. Each is written as
gradients of gradients; the pass ``taylor-mode`` makes one forward sweep of them, in which sums of highest derivatives
travel as one value: a Laplacian in d dimensions costs about d + 2 forward passes. In eager mode the way from points to
values is read back from the tape for that (:mod:`argosy_autograd.replay`); where it is not made of operators alone,
gradients of gradients are what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from argosy_autograd import anomaly
from argosy_autograd.engine import dependence, grad
from argosy_autograd.errors import DifferentiationError, MissingRule, explain_error, unused_input
from argosy_autograd.modes import linear
from argosy_autograd.replay import replay_sweep
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor as TensorType

if TYPE_CHECKING:
    Tensor: TypeAlias = Any  # the operators of tensors are installed at run time, where no checker sees them
else:
    from argosy_tensorcore.tensor import Tensor

Apply: TypeAlias = Callable[..., Any]

__all__ = ["biharmonic", "curl", "divergence", "laplacian", "linear_operator"]


def laplacian(ys: Tensor, xs: Tensor) -> Tensor:
    """The sum of the second derivatives along every coordinate, of the shape of ``ys``.

    Raises :class:`DifferentiationError` when the shapes do not fit (see the module), and where a :class:`PyLayer` on
    the way gives a gradient that is cut off from the one it takes: higher derivatives would miss it.
    """
    return _for_each_value("laplacian", 2, ys, xs, _laplacian)


def biharmonic(ys: Tensor, xs: Tensor) -> Tensor:
    """The Laplacian of the Laplacian, of the shape of ``ys``."""
    return _for_each_value("biharmonic", 4, ys, xs, lambda u, xs: _laplacian(_laplacian(u, xs), xs))


def divergence(ys: Tensor, xs: Tensor) -> Tensor:
    """``sum over i of d ys_i / d xs_i`` of a vector field ``ys`` [*rows, d]: [*rows]."""
    _check_kinds("divergence", ys, xs)
    if list(ys.shape) != list(xs.shape):
        raise DifferentiationError(
            f"divergence: a vector field has the shape of its points {list(xs.shape)}, got {list(ys.shape)}"
        )
    return _compute(
        "divergence", 1, (), lambda ys, xs: _sum([_derivative(ys[..., i], xs, i) for i in range(xs.shape[-1])]), ys, xs
    )


def curl(ys: Tensor, xs: Tensor) -> Tensor:
    """The curl of a vector field: [*rows, 3] in three dimensions, [*rows] (its only component) in two."""
    _check_kinds("curl", ys, xs)
    d = xs.shape[-1]
    if list(ys.shape) != list(xs.shape) or d not in (2, 3):
        raise DifferentiationError(
            f"curl: wants a vector field in two or three dimensions, got values {list(ys.shape)} at points "
            f"{list(xs.shape)}"
        )
    return _compute("curl", 1, (), _curl, ys, xs)


def _curl(ys: Tensor, xs: Tensor) -> Tensor:
    if xs.shape[-1] == 2:
        return _derivative(ys[..., 1], xs, 0) - _derivative(ys[..., 0], xs, 1)
    slopes = [_gradient(ys[..., i], xs) for i in range(3)]
    parts = [slopes[k][..., j] - slopes[j][..., k] for j, k in ((1, 2), (2, 0), (0, 1))]
    return _operator("stack")(parts, axis=-1)


def linear_operator(ys: Tensor, xs: Tensor, terms: Mapping[Sequence[int], float | Tensor]) -> Tensor:
    """``sum of c * (d^k ys / d xs_i ... d xs_j)`` over ``terms``: ``{(i, ..., j): c}``, of the shape of ``ys``.

    A key lists the coordinates of one partial derivative, ``()`` the value itself; ``c`` is a number or a tensor of
    shape [*rows]. The beam equation's ``d^4/dx^4`` in one dimension is ``{(0, 0, 0, 0): 1.0}``.

    Raises :class:`DifferentiationError` for terms that are not of this form, and when the shapes do not fit.
    """
    _check_kinds("linear_operator", ys, xs)
    _check_terms(terms, xs.shape[-1])
    fields = [c for c in terms.values() if isinstance(c, TensorType)]

    def apply(u: Tensor, xs: Tensor, *fields: Tensor) -> Tensor:
        known: dict[tuple[int, ...], Tensor] = {(): u}
        given = iter(fields)
        factors = [next(given) if isinstance(c, TensorType) else c for c in terms.values()]
        parts = zip(terms, factors, strict=True)
        return _sum([_partial_derivative(known, tuple(sorted(key)), xs) * c for key, c in parts])

    described = tuple((tuple(key), None if isinstance(c, TensorType) else c) for key, c in terms.items())
    return _for_each_value("linear_operator", max(map(len, terms)), ys, xs, apply, described, fields)


def _check_terms(terms: Any, size: int) -> None:
    form = f"expected {{(i, ..., j): coefficient}} with coordinates 0 to {size - 1}"
    if not isinstance(terms, Mapping) or not terms:
        raise DifferentiationError(f"linear_operator: {form}, got {terms!r}")
    for key, c in terms.items():
        if not isinstance(key, tuple) or not all(isinstance(i, int) and 0 <= i < size for i in key):
            raise DifferentiationError(f"linear_operator: {form}, got the key {key!r}")
        if not isinstance(c, (int, float, complex, TensorType, np.number)):
            raise DifferentiationError(
                f"linear_operator: the coefficient of {key} should be a number or a tensor, got {type(c).__name__}"
            )


def _partial_derivative(known: dict[tuple[int, ...], Tensor], key: tuple[int, ...], xs: Tensor) -> Tensor:
    """The partial derivative along ``key``, from one of one order less."""
    if key not in known:
        known[key] = _derivative(_partial_derivative(known, key[:-1], xs), xs, key[-1])
    return known[key]


def _for_each_value(
    name: str, order: int, ys: Tensor, xs: Tensor, apply: Apply, key: Hashable = (), factors: Sequence[Tensor] = ()
) -> Tensor:
    _check_kinds(name, ys, xs)
    rows = list(xs.shape[:-1])
    if rows not in (list(ys.shape), list(ys.shape[:-1])):
        raise DifferentiationError(
            f"{name}: values {list(ys.shape)} do not fit points {list(xs.shape)}; expected {rows} or one axis more"
        )

    def apply_to_each(ys: Tensor, xs: Tensor, *factors: Tensor) -> Tensor:
        if ys.ndim < xs.ndim:
            return apply(ys, xs, *factors)
        return _operator("stack")([apply(ys[..., j], xs, *factors) for j in range(ys.shape[-1])], axis=-1)

    return _compute(name, order, key, apply_to_each, ys, xs, factors)


def _compute(
    name: str, order: int, key: Hashable, function: Apply, ys: Tensor, xs: Tensor, factors: Sequence[Tensor] = ()
) -> Tensor:
    """``function(ys, xs, *factors)``, of derivatives up to ``order``; in eager mode in one sweep, where that can be.
    From the second order on what a custom derivative cuts off is refused: zero would be wrong."""
    _check_dependence(name, ys, xs)
    found: Tensor | None = None
    refusing = linear.set((lambda: f"{anomaly.describe_request([ys], order)} by {name}") if order > 1 else None)
    try:
        if active_tracer() is None:
            found = replay_sweep(name, key, function, ys, xs, factors)
        return function(ys, xs, *factors) if found is None else found
    except MissingRule as error:
        raise explain_error(error, f"asked for by {name}") from None
    finally:
        linear.reset(refusing)


def _check_kinds(name: str, ys: Any, xs: Any) -> None:
    for which, t in (("values", ys), ("points", xs)):
        if not isinstance(t, TensorType):
            raise DifferentiationError(f"{name}: the {which} should be a tensor, got {type(t).__name__}")
    if not xs.ndim:
        raise DifferentiationError(
            f"{name}: the points are a number alone; their last axis counts the coordinates: give {name}() points of "
            "shape [1] or [n, 1], and compute the values from them"
        )


def _check_dependence(name: str, ys: Tensor, xs: Tensor) -> None:
    """Raise where no derivative of first order exists; higher ones may well be zero."""
    if ys.dtype.kind not in "fc":
        _, asked, _ = dependence(ys, xs)
        raise DifferentiationError(f"{name}: the values are {ys.dtype.name}, which has no derivatives; {asked}")
    moving = xs.dtype.kind in "fc" and not xs.stop_gradient
    depends, asked, blocker = dependence(ys, xs)
    if depends and moving:
        return
    raise unused_input(f"{name}: the values do not depend on the points", xs, asked, blocker)


def _laplacian(u: Tensor, xs: Tensor) -> Tensor:
    slope = _gradient(u, xs)
    return _sum([_derivative(slope[..., i], xs, i) for i in range(xs.shape[-1])])


def _derivative(u: Tensor, xs: Tensor, coordinate: int) -> Tensor:
    return _gradient(u, xs)[..., coordinate]


def _gradient(u: Tensor, xs: Tensor) -> Tensor:
    """The gradient of each value by its point: rows keep apart, so that the gradient of the sum is it."""
    if u.stop_gradient:  # a constant
        return _operator("zeros_like")(xs)
    (g,) = grad(_operator("sum")(u), xs, create_graph=True, allow_unused=True)
    return _operator("zeros_like")(xs) if g is None else g


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _operator(name: str) -> Any:
    return get_operator(name)

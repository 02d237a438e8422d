"""Derivatives of functions under Paddle's names: ``paddle.incubate.autograd``.

``Jacobian`` and ``Hessian`` are those of functions: several inputs and results are flattened and joined to one matrix.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_autograd.engine import grad as _grad
from argosy_autograd.errors import DifferentiationError
from argosy_autograd.functional import Jacobian as _Rows
from argosy_autograd.functional import check_dependence, jvp, vjp
from argosy_autograd.modes import enable_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Hessian",
    "Jacobian",
    "disable_prim",
    "enable_prim",
    "forward_grad",
    "grad",
    "jvp",
    "prim2orig",
    "prim_enabled",
    "vjp",
]

Tensors = Tensor | Sequence[Tensor]
_primitive = [False]


class Jacobian:
    """The matrix of first derivatives of ``func`` at ``xs``, computed row by row when indexed.

    Its shape is [M, N] for M elements of all results and N of all inputs; with ``is_batched`` [B, M, N], where the
    first axis of every tensor counts samples and those of one depend on that one alone. What does not depend on an
    input has zeros; with ``strict`` that raises :class:`UnusedInput`.
    """

    def __init__(
        self, func: Callable[..., Any], xs: Tensors, is_batched: bool = False, *, strict: bool = False
    ) -> None:
        self._batch = 1 if is_batched else 0
        self._inputs = [_as_leaf(x) for x in _as_list(xs)]
        with enable_grad():
            made = func(*self._inputs)
        results = [made] if type(made) is Tensor else list(made)
        if strict:
            check_dependence(f"{type(self).__name__}()", results, self._inputs)
        self._result = _join(results, self._batch)
        self._matrices = [_Rows(self._result, x, 0 if is_batched else None) for x in self._inputs]
        self._rows: dict[int, Tensor] = {}

    @property
    def shape(self) -> list[int]:
        """The shape of the matrix."""
        width = sum(prod(x.shape[self._batch :]) for x in self._inputs)
        return [*self._result.shape, width]

    def _row(self, number: int) -> Tensor:
        if number not in self._rows:
            self._rows[number] = _join([m.row(number) for m in self._matrices], self._batch)
        return self._rows[number]

    def __getitem__(self, indexes: Any) -> Tensor:
        index: tuple[Any, ...] = indexes if isinstance(indexes, tuple) else (indexes,)
        if any(each is Ellipsis for each in index):
            raise IndexError("Jacobian: an ellipsis is no index of it; write the slices out")
        index += (slice(None),) * (2 + self._batch - len(index))
        lead, chosen, rest = index[: self._batch], index[self._batch], index[self._batch + 1 :]
        count = range(self.shape[self._batch])
        if isinstance(chosen, int):
            return self._row(count[chosen])[(*lead, *rest)]
        rows = [self._row(i) for i in list(count)[chosen]]
        return get_operator("stack")(rows, axis=self._batch)[(*lead, slice(None), *rest)]


class Hessian(Jacobian):
    """The matrix of second derivatives of a scalar function (with ``is_batched``: one scalar for each sample)."""

    def __init__(
        self, func: Callable[..., Any], xs: Tensors, is_batched: bool = False, *, strict: bool = False
    ) -> None:
        def slope(*inputs: Tensor) -> Sequence[Tensor]:
            y = func(*inputs)
            y = y if type(y) is Tensor else y[0]
            if prod(y.shape[1 if is_batched else 0 :]) != 1:
                raise DifferentiationError(f"Hessian: func should give a scalar, it gave shape {list(y.shape)}")
            if strict:
                check_dependence("Hessian()", [y], inputs)
            found = _grad(get_operator("sum")(y), inputs, create_graph=True, allow_unused=True)
            return [get_operator("zeros_like")(x) if g is None else g for g, x in zip(found, inputs, strict=True)]

        super().__init__(slope, xs, is_batched, strict=strict)


def _as_list(xs: Tensors) -> list[Tensor]:
    return [xs] if type(xs) is Tensor else list(xs)


def _as_leaf(x: Tensor) -> Tensor:
    """``x`` as an input of its own, in the graph of ``x`` where it has one."""
    if x.stop_gradient:
        x = x.detach()
        x.stop_gradient = False
        return x
    return get_operator("assign")(x)


def _flatten(x: Tensor, batch: int) -> Tensor:
    return get_operator("reshape")(x, [*x.shape[:batch], -1])


def _join(parts: Sequence[Tensor], batch: int) -> Tensor:
    flat = [_flatten(x, batch) for x in parts]
    return flat[0] if len(flat) == 1 else get_operator("concat")(flat, batch)


def grad(outputs: Tensors, inputs: Tensors, grad_outputs: Tensors | None = None) -> Any:
    """The gradients of computed ``outputs`` by ``inputs``, in the graph; shaped as ``inputs``."""
    seeds = None if grad_outputs is None else _as_list(grad_outputs)
    found = _grad(_as_list(outputs), _as_list(inputs), seeds, create_graph=True, allow_unused=True)
    return found[0] if type(inputs) is Tensor else found


def forward_grad(outputs: Tensors, inputs: Tensors, grad_inputs: Tensors | None = None) -> Any:
    """The derivatives of computed ``outputs`` along ``grad_inputs`` (ones by default), shaped as ``outputs``.

    The reverse derivative is linear in its seed; its own derivative by the seed is this one.
    """
    ends, moving = _as_list(outputs), _as_list(inputs)
    seeds = [_as_leaf(get_operator("zeros_like")(y).detach()) for y in ends]
    along = [get_operator("ones_like")(x) for x in moving] if grad_inputs is None else _as_list(grad_inputs)
    found = _grad(ends, moving, seeds, create_graph=True, allow_unused=True)
    pairs = [(g, v) for g, v in zip(found, along, strict=True) if g is not None and not g.stop_gradient]
    made: Sequence[Tensor | None] = [None] * len(ends)
    if pairs:
        made = _grad([g for g, _ in pairs], seeds, [v for _, v in pairs], create_graph=True, allow_unused=True)
    results = [get_operator("zeros_like")(y) if d is None else d for d, y in zip(made, ends, strict=True)]
    return results[0] if type(outputs) is Tensor else results


def enable_prim() -> None:
    """Accepted: programs are always differentiated as primitives. :func:`prim_enabled` tells what was asked for."""
    _primitive[0] = True


def disable_prim() -> None:
    """Takes :func:`enable_prim` back, which changes nothing but what :func:`prim_enabled` says."""
    _primitive[0] = False


def prim_enabled() -> bool:
    """What was asked for last."""
    return _primitive[0]


def prim2orig(block: object = None) -> None:
    """Accepted: what runs are the primitives themselves, so there is nothing to lower them to."""

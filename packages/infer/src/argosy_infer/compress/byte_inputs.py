"""Inputs of weight products in bytes: rounded while a program runs, with a step for each row, or one for all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.weights import apply_operator
from argosy_phi_ops import prim
from argosy_pir.values import Value

__all__ = ["SMALLEST", "STEPS", "experts_of_bytes", "product_of_bytes", "round_inputs"]

SMALLEST = np.float32(1e-5)
"""Magnitude that steps are of at least."""
STEPS = np.float32(127.5)
"""Of the largest magnitude: as compressed-tensors rounds inputs, to bytes from -128 to 127."""


def product_of_bytes(
    x: Value,
    bias: Value | None,
    weight: Value,
    scales: Value,
    factors: Value | None = None,
    step: Value | None = None,
    location: Any = None,
    **form: Any,
) -> Value:
    """``x * factors`` [..., in] rounded to bytes, times the numbers ``weight`` with ``scales``, which have this
    ``form`` of `weight_only_linear`, times the steps of ``x``, plus ``bias``."""
    multiply = partial(apply_operator, "weight_only_linear", location=location, **form)
    made = _multiply(x, factors, step, lambda whole: multiply(whole, weight, None, scales))
    if bias is not None:
        wide = prim.cast(bias, dtype="float32")
        made = prim.add(made, prim.broadcast(wide, shape=made.shape, axes=(x.ndim - 1,)))
    return prim.cast(made, dtype=x.dtype)  # type: ignore[no-any-return]


def experts_of_bytes(
    x: Value,
    chosen: Value,
    bias: Value | None,
    weight: Value,
    scales: Value,
    factors: Value | None = None,
    step: Value | None = None,
    location: Any = None,
) -> Value:
    """The same of x [tokens, c, in] with the matrices of ``weight`` [experts, in, out] that ``chosen`` [tokens, c]
    names, ``bias`` [experts, out] likewise; with ``scales`` [experts, groups, out]."""
    multiply = partial(apply_operator, "gather_mm", location=location)
    made = _multiply(x, factors, step, lambda whole: multiply(whole, chosen, weight, None, scales))
    if bias is not None:
        index = prim.reshape(prim.cast(chosen, dtype="int64"), shape=(*chosen.shape, 1))
        made = prim.add(made, prim.gather(prim.cast(bias, dtype="float32"), index, axes=(0,)))
    return prim.cast(made, dtype=x.dtype)  # type: ignore[no-any-return]


def _multiply(x: Value, factors: Value | None, step: Value | None, product: Callable[[Value], Value]) -> Any:
    """The ``product`` [..., out] of the bytes that ``x * factors`` is rounded to, times their steps."""
    spread, steps = round_inputs(x, factors, step)
    sums = product(prim.cast(spread, dtype="int8"))
    return prim.mul(sums, prim.broadcast(steps, shape=sums.shape, axes=tuple(range(x.ndim - 1))))


def round_inputs(x: Value, factors: Value | None = None, step: Value | None = None) -> tuple[Any, Any]:
    """``x * factors`` [..., in] as whole numbers of a byte in float32, and their steps [...]."""
    last, outer = x.ndim - 1, tuple(range(x.ndim - 1))
    wide: Any = prim.cast(x, dtype="float32")
    if factors is not None:
        wide = prim.mul(wide, prim.broadcast(factors, shape=wide.shape, axes=(last,)))
    if step is None:
        peak = prim.maximum(prim.reduce_max(prim.abs(wide), axes=(last,)), float(SMALLEST))
        steps = prim.div(peak, float(STEPS))
    else:
        steps = prim.broadcast(step, shape=x.shape[:-1], axes=())
    spread = prim.round(prim.div(wide, prim.broadcast(steps, shape=wide.shape, axes=outer)))
    return prim.maximum(prim.minimum(spread, 127.0), -128.0), steps

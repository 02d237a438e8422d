"""Indices held against the sizes of the axes that they address, in eager execution.

The primitives ``gather`` and ``scatter`` clamp and drop what is out of range, as compiled code must. An operator that
users give indices to says with :meth:`Operator.bounded` which they are, and they are looked at before its kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.operator import Operator

__all__ = ["bounded_kernel"]

Kernel = Callable[[Sequence[Any], dict[str, Any]], Any]


def bounded_kernel(op: Operator, kernel: Kernel) -> Kernel:
    """``kernel`` of ``op`` behind a look at its indices, which raises :class:`AxisError`."""
    bounds = op.bounds
    assert bounds is not None

    def run(arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
        for indices, low, size in bounds(**op.signature.regroup(arrays, attributes)):
            _check(op.name, indices, low, size)
        return kernel(arrays, attributes)

    return run


def _check(name: str, indices: Any, low: int, size: int) -> None:
    if not indices.size or indices.dtype.kind not in "iu":
        return
    least, most = int(indices.min()), int(indices.max())
    if least < low or most >= size:
        wrong = least if least < low else most
        raise AxisError(f"{name}: index {wrong} is out of range; expected {low} to {size - 1} for an axis of {size}")

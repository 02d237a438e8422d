"""The dialect ``ad``: a gradient request, kept whole until the pass ``expand-gradients``.

``ad.gradient(outputs..., inputs..., cotangents...) {counts = (outputs, inputs, cotangents)}`` is the product of
the cotangents (ones when there are none) with the derivative of the outputs with respect to the inputs: one
result of the type of each input, zeros for an input that the outputs do not depend on. The inputs are values:
what lies before them plays no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_pir import PURE, Dialect, OpDef, Operation, Type, Value, VerifyError, register_dialect

__all__ = ["DIALECT", "parts"]


def _split(values: Sequence[Any], counts: Sequence[int]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    n, m, k = counts
    if len(values) != n + m + k or k not in (0, n):
        raise ValueError(
            "ad.gradient takes outputs, inputs and no cotangent or one for each output; "
            f"counts {tuple(counts)} do not fit {len(values)} operands"
        )
    return values[:n], values[n : n + m], values[n + m :]


def parts(op: Operation) -> tuple[Sequence[Value], Sequence[Value], Sequence[Value]]:
    """Outputs, inputs and cotangents of an ``ad.gradient``."""
    return _split(op.operands, op.attributes["counts"])


def _infer(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()) -> Sequence[Type]:
    return _split(types, attributes["counts"])[1]


def _verify(op: Operation) -> None:
    outputs, _, cotangents = parts(op)
    for y, g in zip(outputs, cotangents, strict=False):
        if y.type != g.type:
            raise VerifyError(f"the cotangent of an output of type {y.type} is of type {g.type}", op)


DIALECT = register_dialect(
    Dialect("ad", [OpDef("ad.gradient", ["*values"], {"counts": "ints"}, None, [PURE], _infer, _verify)])
)
"""The dialect of gradient requests."""

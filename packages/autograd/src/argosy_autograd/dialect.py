"""The dialect ``ad``: a gradient request, kept whole until the pass ``expand-gradients``.

``ad.gradient(outputs..., inputs..., cotangents...) {counts = (outputs, inputs, cotangents)}`` is the product of
the cotangents (ones when there are none) with the derivative of the outputs with respect to the inputs: one
result of the type of each input, zeros for an input that the outputs do not depend on. The inputs are values:
what lies before them plays no part. A fourth count says how many values follow that no derivative goes through.

``ad.custom(outputs..., inputs...) {outputs = how many}`` is its outputs, with a derivative of its own: the
region takes the cotangents of the differentiable outputs and yields those of the differentiable inputs. It
reads what it likes around it. With ``refusal`` there is none: who asks for it is told that text.

``ad.jet(outputs..., inputs..., series...) {counts = (outputs, inputs, order)}`` has the derivatives 1 to ``order`` of
each output (one after the other) along a curve on which input i has the derivatives ``series[i * order + k - 1]``.

``ad.coefficient(value) {terms = ((directions, factor), ...), request}`` is a sum of Taylor coefficients of the value
along directions that the pass ``taylor-mode`` numbers, as it does requests; it is there while that pass runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_pir import PURE, Dialect, OpDef, Operation, Type, Value, VerifyError, register_dialect

__all__ = ["DIALECT", "constants_of", "custom_parts", "jet_parts", "parts"]


def _split(values: Sequence[Any], counts: Sequence[int]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    n, m, k, *constant = counts
    if len(values) != n + m + k + sum(constant) or k not in (0, n):
        raise ValueError(
            "ad.gradient takes outputs, inputs and no cotangent or one for each output; "
            f"counts {tuple(counts)} do not fit {len(values)} operands"
        )
    return values[:n], values[n : n + m], values[n + m : n + m + k]


def constants_of(op: Operation) -> Sequence[Value]:
    """The values that the derivative of an ``ad.gradient`` does not go through."""
    return op.operands[sum(op.attributes["counts"][:3]) :]


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


def custom_parts(op: Operation) -> tuple[Sequence[Value], Sequence[Value]]:
    """Outputs and inputs of an ``ad.custom``."""
    count = op.attributes["outputs"]
    return op.operands[:count], op.operands[count:]


def _infer_custom(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()) -> Sequence[Type]:
    return types[: attributes["outputs"]]


def jet_parts(op: Operation) -> tuple[Sequence[Value], Sequence[Value], Sequence[Value]]:
    """Outputs, inputs and series of an ``ad.jet``."""
    return _split_jet(op.operands, op.attributes["counts"])


def _split_jet(values: Sequence[Any], counts: Sequence[int]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    n, m, order = counts
    if len(values) != n + m + m * order:
        raise ValueError(f"ad.jet: counts {tuple(counts)} do not fit {len(values)} operands")
    return values[:n], values[n : n + m], values[n + m :]


def _infer_jet(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()) -> Sequence[Type]:
    outputs, _, _ = _split_jet(types, attributes["counts"])
    return [y for y in outputs for _ in range(attributes["counts"][2])]


def _verify_jet(op: Operation) -> None:
    _, inputs, series = jet_parts(op)
    order = op.attributes["counts"][2]
    for i, g in enumerate(series):
        if g.type != inputs[i // order].type:
            raise VerifyError(f"derivatives of an input of type {inputs[i // order].type} are of type {g.type}", op)


def _infer_same(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()) -> Sequence[Type]:
    return types


DIALECT = register_dialect(
    Dialect(
        "ad",
        [
            OpDef("ad.gradient", ["*values"], {"counts": "ints"}, None, [PURE], _infer, _verify),
            OpDef("ad.jet", ["*values"], {"counts": "ints"}, None, [PURE], _infer_jet, _verify_jet),
            OpDef("ad.coefficient", ["value"], {"terms": "any", "request": "int"}, None, [PURE], _infer_same),
            OpDef(
                "ad.custom", ["*values"], {"outputs": "int", "refusal": "str?"}, None, [PURE], _infer_custom, regions=1
            ),
        ],
    )
)
"""The dialect of gradient requests."""

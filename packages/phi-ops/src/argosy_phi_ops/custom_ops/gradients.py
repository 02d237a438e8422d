"""Gradients of custom operators: functions on tensors, which are captured, or on arrays, which are host functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from argosy_phi_ops.custom_ops.host_functions import HOSTS, Cotangents, HostFunction
from argosy_phi_ops.custom_ops.tracing import check_type, inline_function
from argosy_phi_ops.declare.signature import Signature
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.binding import constant
from argosy_phi_ops.primitives.checks import INEXACT
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Forward", "array_gradient", "tensor_gradient"]


class Forward(NamedTuple):
    """The operator that is differentiated."""

    host: HostFunction
    signature: Signature

    @property
    def label(self) -> str:
        """What messages call the gradient."""
        return f"the gradient of custom operator {self.host.name}"

    def call(self, function: Callable[..., Any], given: Sequence[Any], results: int, arguments: Any) -> list[Any]:
        """Call ``function(g, result, *operands, **attributes)`` with a flat list: cotangents, results, operands.

        Returns one gradient (or None) for each operand. Raises :class:`OperatorError` for another number of them.
        """
        g, result, operands = given[:results], given[results : 2 * results], given[2 * results :]
        grouped = self.signature.regroup(operands, dict(arguments))
        taken = [grouped.pop(p.name) for p in self.signature.operands]
        bundle = (g[0], result[0]) if results == 1 else (tuple(g), tuple(result))
        made = function(*bundle, *taken, **grouped)
        if len(taken) == 1 and not isinstance(made, tuple):
            made = (made,)
        if not isinstance(made, (tuple, list)) or len(made) != len(taken):
            count = len(made) if isinstance(made, (tuple, list)) else 1
            raise OperatorError(f"{self.label} returned {count} gradients for {len(taken)} operands")
        return self._flatten_gradients(taken, made)

    def _flatten_gradients(self, taken: Sequence[Any], made: Sequence[Any]) -> list[Any]:
        flat: list[Any] = []
        for p, operand, gradient in zip(self.signature.operands, taken, made, strict=True):
            if not isinstance(operand, list):
                flat += [] if operand is None else [gradient]
                continue
            each = [None] * len(operand) if gradient is None else list(gradient)
            if len(each) != len(operand):
                raise OperatorError(
                    f"{self.label} returned {len(each)} gradients for {len(operand)} tensors of {p.name!r}"
                )
            flat += each
        return flat


def _fill(g: Sequence[Value | None], results: Sequence[Value]) -> list[Value]:
    """The cotangents, zeros for results that nothing depends on."""
    return [constant(0, r.dtype, r.shape) if c is None else c for c, r in zip(g, results, strict=True)]


def tensor_gradient(forward: Forward, function: Callable[..., Any]) -> Cotangents:
    """The cotangents that ``function`` computes on tensors, as primitives."""

    def cotangents(
        g: Sequence[Value | None], results: Sequence[Value], operands: Sequence[Value], arguments: Mapping[str, Any]
    ) -> list[Value | None]:
        def run(tensors: list[Any]) -> Sequence[Any]:
            return forward.call(function, tensors, len(results), arguments)

        made = inline_function(forward.label, run, [*_fill(g, results), *results, *operands])
        for number, (value, x) in enumerate(zip(made, operands, strict=True)):
            check_type(forward.label, f"that of operand {number}", value, x.type)
        return made

    return cotangents


def array_gradient(forward: Forward, function: Callable[..., Any]) -> Cotangents:
    """The cotangents that ``function`` computes on arrays, as a host call of its own."""

    def body(arrays: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
        arguments = dict(arguments)
        results = arguments.pop("results")
        made = forward.call(function, arrays, results, arguments)
        operands = zip(made, arrays[2 * results :], strict=True)
        return [np.zeros_like(x) if c is None else c for c, x in operands if _name(x.dtype) in INEXACT]

    def rule(types: Sequence[TensorType], arguments: Mapping[str, Any]) -> list[TensorType]:
        return [t for t in types[2 * arguments["results"] :] if t.dtype in INEXACT]

    host = HostFunction(f"{forward.host.name}:gradient", body, rule, _reversed_axes(forward.host.axes))
    HOSTS[host.name] = host

    def cotangents(
        g: Sequence[Value | None], results: Sequence[Value], operands: Sequence[Value], arguments: Mapping[str, Any]
    ) -> list[Value | None]:
        given = [*_fill(g, results), *results, *operands]
        told = {**arguments, "results": len(results)}
        made = PRIMITIVES["host_call"](*given, function=host.name, arguments=told)
        values = iter(made if isinstance(made, tuple) else (made,))
        return [next(values) if x.dtype in INEXACT else None for x in operands]

    return cotangents


def _name(dtype: Any) -> str:
    return as_dtype(dtype).name


def _reversed_axes(axes: str) -> str:
    """The notation of the gradient: cotangents and results like the results, gradients like the operands."""
    if not axes:
        return ""
    operands, _, results = axes.partition("->")
    plain = operands.replace("!", "")
    mixing = {word[1:] for word in operands.replace("(", " ").replace(")", " ").split() if word.startswith("!")}
    marked = " ".join("!" + word if word in mixing else word for word in results.replace(",", " , ").split())
    return f"{marked}, {marked}, {operands} -> {plain}"

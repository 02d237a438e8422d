"""Host functions by name: what the primitive ``host_call`` calls.

A program holds the name only, so that loading one executes nothing; a name that this process has not registered is an
error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.declare.axes import AxisNotation, parse_notation
from argosy_phi_ops.errors import DTypeError, OperatorError, ShapeError
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["HOSTS", "HostFunction", "find_host", "read_only"]

Array = np.ndarray[Any, Any]
Cotangents = Callable[[Sequence[Value], Sequence[Value], Sequence[Value], Mapping[str, Any]], "list[Value | None]"]

HOSTS: dict[str, HostFunction] = {}
"""Every host function of this process, by name."""


class HostFunction:
    """A pure function of arrays with its type rule.

    ``body(arrays, arguments)`` computes the results, ``rule(types, arguments)`` gives their types. ``axes`` (notation
    of :mod:`argosy_phi_ops.declare.axes`) says along which axes it can be split; without it, it works on whole tensors.
    ``cotangents(g, results, operands, arguments)`` emits the gradient; None where there is none.
    """

    __slots__ = ("_ranks", "axes", "body", "cotangents", "name", "rule")

    def __init__(
        self,
        name: str,
        body: Callable[[Sequence[Array], Mapping[str, Any]], Any],
        rule: Callable[[Sequence[TensorType], Mapping[str, Any]], Sequence[TensorType]],
        axes: str = "",
    ) -> None:
        self.name = name
        self.body = body
        self.rule = rule
        self.axes = axes
        self.cotangents: Cotangents | None = None
        self._ranks: set[tuple[int, ...]] = set()  # that fit the axes

    def notation(self, types: Sequence[TensorType]) -> AxisNotation | None:
        """The axis notation for operands of these types; None where none was declared.

        Raises :class:`ShapeError` where the operands' ranks do not fit it.
        """
        if not self.axes:
            return None
        try:
            return parse_notation(self.axes, [t.shape for t in types])
        except ValueError as error:
            raise ShapeError(f"{self.name}: {error}") from None

    def infer(self, types: Sequence[TensorType], arguments: Mapping[str, Any]) -> Sequence[TensorType]:
        """The results' types. Raises :class:`ShapeError` for ranks that the declared axes do not fit."""
        ranks = tuple(len(t.shape) for t in types)
        if ranks not in self._ranks:
            self.notation(types)
            self._ranks.add(ranks)
        return self.rule(types, arguments)

    def run(self, arrays: Sequence[Array], arguments: Mapping[str, Any]) -> list[Array]:
        """The results, checked against the type rule. Raises what the body raises, with a note of where that was.

        Raises:
            ShapeError, DTypeError, OperatorError: where the results are not what the type rule says.
        """
        types = [TensorType(a.shape, as_dtype(a.dtype).name) for a in arrays]
        expected = self.infer(types, arguments)
        try:
            made = self.body([read_only(a) for a in arrays], arguments)
        except Exception as error:
            error.add_note(f"raised by the body of custom operator {self.name} on ({', '.join(map(str, types))})")
            raise
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(results) != len(expected):
            raise OperatorError(
                f"{self.name}: its body returned {len(results)} results where its type rule says {len(expected)}"
            )
        return _copy_overlaps(
            [self._check_result(i, r, t) for i, (r, t) in enumerate(zip(results, expected, strict=True))]
        )

    def _check_result(self, number: int, result: Any, expected: TensorType) -> Array:
        if result is None:
            raise OperatorError(f"{self.name}: its body returned None for result {number}, expected {expected}")
        array = np.asarray(result)
        shown = f"result {number} of its body is {array.dtype} {list(array.shape)}, its type rule says {expected}"
        if array.dtype != as_dtype(expected.dtype).numpy:
            raise DTypeError(f"{self.name}: {shown}")
        if array.shape != tuple(expected.shape):
            raise ShapeError(f"{self.name}: {shown}")
        return array


def _copy_overlaps(results: list[Array]) -> list[Array]:
    """``results``, copied where one shares memory with one before it."""
    for i in range(1, len(results)):
        if any(np.may_share_memory(results[i], other) for other in results[:i]):
            results[i] = results[i].copy()
    return results


def read_only(array: Array) -> Array:
    """A view that cannot be written, or a copy of it where the elements do not lie in C order."""
    made = np.asarray(array, order="C").view()
    made.flags.writeable = False
    return made


def find_host(name: str) -> HostFunction:
    """The host function ``name``. Raises :class:`OperatorError` where this process has registered none."""
    found = HOSTS.get(name)
    if found is None:
        raise OperatorError(
            f"custom operator {name!r} is not registered in this process: import the module that declares it with "
            f"custom_op before the program is used; registered are: {', '.join(sorted(HOSTS)) or 'none'}"
        )
    return found

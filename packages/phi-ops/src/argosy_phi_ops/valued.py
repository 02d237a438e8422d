"""Eager applications to numbers that come again and again, as in ``x ** 2`` and ``x > 0``: compiled with the numbers as
constants, for native code. Numbers that keep changing are left to numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from argosy_phi_ops import native
from argosy_phi_ops.context import building
from argosy_phi_ops.expansion import inline_body
from argosy_phi_ops.hot import Counted, NativeKernel
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = ["Valued", "valued"]

_MOST = 4  # values of one route that are counted
_NUMBERS = frozenset({int, float})


def valued(route: Any) -> Valued | None:
    """What counts the values of a route with tensors of one floating dtype, perhaps masks, and numbers; None for any
    other route."""
    tensors = [t for t in route.types if type(t) is ArrayType]
    numbers = [t for t in route.types if type(t) is not ArrayType]
    if not numbers or route.dtypes is None or not _NUMBERS.issuperset(numbers):
        return None
    kept = all(d is None for t, d in zip(route.types, route.dtypes, strict=True) if type(t) is ArrayType)
    kinds = {t.dtype for t in (tensors[:-1] if route.draws else tensors) if t.dtype.name != "bool"}
    one = kinds.pop().kind in "fc" if len(kinds) == 1 else route.draws and not kinds
    return Valued(route) if kept and one and not route.op.view else None


class Valued:
    """Counts the calls of a route by the values of its numbers; ``least`` is like that of :class:`Counted`."""

    __slots__ = ("found", "route")

    def __init__(self, route: Any) -> None:
        self.route = route
        self.found: dict[tuple[Any, ...], Counted] = {}

    def count(self, operands: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Note a call; compile it, when its numbers have come often enough."""
        key = tuple([(type(x), x) for x in operands if type(x) is not Tensor])
        counted = self.found.get(key)
        if counted is None:
            reading = native.read(args, kwargs)
            if reading is None or len(self.found) == _MOST or any(x != x for _, x in key):
                self.route.values = None
                return
            numbers = tuple([None if type(x) is Tensor else x for x in operands])
            counted = self.found[key] = Counted(
                _nothing, partial(self._program, numbers), partial(self._learn, numbers, reading), _nothing,
                partial(native.least_steps, self.route),
            )  # fmt: skip
        counted()

    def _program(self, numbers: Sequence[Any]) -> Program:
        route = self.route
        program = Program(route.op.name)
        given = [
            program.add_input(TensorType(t.shape, t.dtype.name)) if x is None else x
            for t, x in zip(route.types, numbers, strict=True)
        ]
        with building(Builder.at_end(program.block)):
            result = inline_body(route.op, given, route.attributes)
        program.set_outputs([result])
        return program

    def _learn(self, numbers: Sequence[Any], reading: native.Reading, compiled: NativeKernel) -> Any:
        if compiled.code is not None:
            native.learn_program(self.route, compiled.code, numbers, reading)
        return _nothing


def _nothing(*_: Any) -> None:
    """The kernel has run already."""

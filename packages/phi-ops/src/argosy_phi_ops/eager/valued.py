"""Eager applications to numbers that come again and again, as in ``x ** 2`` and ``x > 0``: compiled with the numbers as
constants where that is exact. Numbers that keep changing are left to numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argosy_phi_ops.context import building
from argosy_phi_ops.declare.expansion import inline_body
from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.tiering import Counted, NativeKernel
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = ["Valued", "valued"]

Kernel = Callable[..., Any]

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
    """Counts the calls of a route by the values of its numbers, and holds what they are computed by."""

    __slots__ = ("found", "route")

    def __init__(self, route: Any) -> None:
        self.route = route
        self.found: dict[tuple[Any, ...], Kernel] = {}

    def kernel(self, operands: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Kernel:
        """What computes a call from the arrays of all its operands: compiled, when its numbers have come often."""
        key = tuple([(type(x), x or repr(x)) for x in operands if type(x) is not Tensor])  # zeros differ by sign
        kernel = self.found.get(key)
        if kernel is None:
            reading = native.read(args, kwargs)
            if reading is None or len(self.found) == _MOST or any(x != x for _, x in key):
                self.route.values = None
                return self.route.kernel  # type: ignore[no-any-return]
            numbers = tuple([None if type(x) is Tensor else x for x in operands])
            kernel = self.found[key] = Counted(
                self.route.kernel, partial(self._program, numbers), partial(self._compiled, numbers, reading),
                partial(self.found.__setitem__, key), partial(native.least_steps, self.route), from_first=False,
            )  # fmt: skip
        return kernel

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

    def _compiled(self, numbers: Sequence[Any], reading: native.Reading, compiled: NativeKernel) -> Kernel:
        """A kernel for calls with these numbers, which are constants of it."""
        if compiled.code is not None:
            native.learn_program(self.route, compiled.code, numbers, reading)
        tensors = [i for i, x in enumerate(numbers) if x is None]
        guarded: Kernel = self.route.guarded(lambda *arrays: compiled([arrays[i] for i in tensors])[0], numbers)
        return guarded

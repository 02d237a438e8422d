"""Kernels of optimizers: a parameter and its states are read and written once, in place.

They compute what the rules in `argosy.optimizer` do operator by operator, in the same order with the same roundings.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn.eager.arithmetic import DTYPES
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I64, PTR, Value, bytes_of, vector

__all__ = ["UPDATES", "add_updates", "update_name"]

UPDATES = {"sgd": 2, "adam": 4}
"""How many arrays each one takes: the parameter, its gradient, and its states."""

_BYTES = 32  # of a vector


def update_name(rule: str, dtype: str) -> str:
    """The exported name of a kernel ``void name(arrays..., scalars, count)``."""
    return f"{rule}_{dtype}"


def add_updates(module: Module) -> None:
    """Define the kernels of all rules and dtypes."""
    for rule, step in (("sgd", _sgd), ("adam", _adam)):
        for dtype, element in DTYPES.items():
            arrays = [(PTR, f"x{i}") for i in range(UPDATES[rule])]
            with module.function(update_name(rule, dtype), [*arrays, (PTR, "scalars"), (I64, "count")]) as f:
                _loops(f, element, step)


_Step = Callable[[Function, list[Value], Callable[[int], Value]], list[tuple[int, Value]]]


def _loops(f: Function, element: str, step: _Step) -> None:
    """Whole vectors, then one by one. ``step`` takes what the arrays hold and gives (array, new value)."""
    *arrays, scalars, count = f.arguments
    lanes = _BYTES // bytes_of(element)
    whole = f.binary("and", count, -lanes)
    for start, stop, width in ((0, whole, lanes), (whole, count, 1)):
        type = vector(element, width)

        def scalar(i: int, width: int = width) -> Value:
            loaded = f.load(element, f.at(scalars, i, element))
            return f.splat(loaded, width) if width > 1 else loaded

        with f.loop(start, stop, width) as loop:
            places = [f.at(array, loop.index, element) for array in arrays]
            values = [f.load(type, place, bytes_of(element)) for place in places]
            for array, value in step(f, values, scalar):
                f.store(value, places[array], bytes_of(element))


def _sgd(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """``p -= rate * g``; scalars: rate."""
    p, g = values
    return [(0, f.fsub(p, f.fmul(scalar(0), g)))]


def _adam(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """``m = m b1 + g (1 - b1)``, ``v = v b2 + g g (1 - b2)``, ``p = p s - size (m / (sqrt(v) + e))``; scalars: b1,
    1 - b1, b2, 1 - b2, s, size, e."""
    p, g, m, v = values
    m = f.fadd(f.fmul(m, scalar(0)), f.fmul(g, scalar(1)))
    v = f.fadd(f.fmul(v, scalar(2)), f.fmul(f.fmul(g, g), scalar(3)))
    move = f.fmul(scalar(5), f.fdiv(m, f.fadd(f.unary("sqrt", v), scalar(6))))
    return [(0, f.fsub(f.fmul(p, scalar(4)), move)), (2, m), (3, v)]

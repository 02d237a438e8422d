"""The sizes that an ``input_spec`` leaves open, as a function's programs have them: symbols wherever that can be, and
numbers where an operator needs them, or where a program for all sizes has no meaning at those of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.jit.arguments import Call
from argosy.jit.specs import matched_key, open_sizes, solved_size, traced_types, with_sizes
from argosy_phi_ops.user_line import warn_user
from argosy_pir.dims import SymExpr, dim_bounds
from argosy_pir.program import Program
from argosy_pir.types import TensorType

__all__ = ["OpenSizes", "SizeBounds"]

_NUMBERS = "sizes"
_KEPT = 1024  # combinations of sizes that are known to need numbers, the latest


class SizeBounds:
    """The sizes of a captured ``program`` that may be none, though all of its symbols are one at least: ``s0 - 8`` of
    ``x[5:-3]``. There the program does not do what eager execution does. ``tensors``: how many inputs are tensors of
    calls."""

    def __init__(self, program: Program, tensors: int) -> None:
        self._types: list[Any] = [value.type for value in program.inputs[:tensors]]
        told = {name for type in self._types for size in type.shape for name in getattr(size, "symbols", ())}
        self._sizes: set[SymExpr] = set()
        for op in program.walk():
            sizes = [size for value in op.results for size in getattr(value.type, "shape", ())]
            self._sizes |= {n for n in sizes if _may_be_none(n) and n.symbols <= told and str(n) not in n.symbols}
        self._within: set[Any] = set()

    def hold(self, call: Call) -> bool:
        """Whether all sizes are what they have to be in this call."""
        if not self._sizes:
            return True
        shapes = tuple(x.payload.shape for x in call.tensors)
        if shapes in self._within:
            return True
        types = zip(self._types, shapes, strict=False)
        pairs = [pair for type, shape in types for pair in zip(type.shape, shape, strict=True)]
        symbols = {str(symbol): n for symbol, n in pairs}
        if any(size.evaluate(symbols) < 1 for size in self._sizes):
            return False
        if len(self._within) < _KEPT:
            self._within.add(shapes)
        return True


def _may_be_none(size: Any) -> bool:
    """Whether a size that is a formula may be less than one."""
    low = dim_bounds(size)[0] if isinstance(size, SymExpr) else 1
    return low is None or low < 1


class OpenSizes:
    """What is known of the open sizes of ``spec`` in calls of the function ``name``.

    A kind of call is captured with symbols first. Where that fails, one size that an operator needs (9 in
    ``x.reshape([x.shape[0], 3, 3])``) is that number, in calls where it is; else the sizes of the call are numbers, so
    that it gets the answer or the error of eager execution.
    """

    def __init__(self, spec: Sequence[Any], name: str) -> None:
        self.spec = spec
        self._name = name
        self._known: dict[Any, dict[str, int]] = {}  # by kind of call: symbols that are numbers
        self._never_symbols: set[Any] = set()  # kinds of calls
        self._numbers: dict[Any, None] = {}  # kinds of calls, each with sizes

    def key(self, call: Call) -> Any:
        """The key of the call's program. Raises ValueError where a tensor does not meet its spec."""
        kind = matched_key(self.spec, call, self._name)
        if not self._known and not self._numbers and not self._never_symbols:
            return kind
        numbered = (_NUMBERS, kind, open_sizes(self.spec, call))
        if kind in self._never_symbols or numbered in self._numbers or not self._has_known(kind, call):
            return numbered
        return kind

    def types(self, call: Call) -> list[TensorType]:
        """The types of the inputs of the call's program."""
        kind = self.key(call)
        if kind[0] == _NUMBERS:
            return traced_types(call)
        return [with_sizes(type, self._known.get(kind, {})) for type in traced_types(call, self.spec)]

    def note_refusal(self, call: Call, error: Exception | None = None) -> bool:
        """Note that the call's program could not be captured, because of ``error``, or has no meaning at its sizes.
        Returns whether it has another program now: one with numbers in place of symbols."""
        key = self.key(call)
        if key[0] == _NUMBERS or not open_sizes(self.spec, call):
            self._numbers.pop(key, None)
            return False
        found = solved_size(error)
        if found is not None and found[0] not in self._known.get(key, {}):
            self._known[key] = {**self._known.get(key, {}), found[0]: found[1]}
            return True
        self._numbers[(_NUMBERS, key, open_sizes(self.spec, call))] = None
        while len(self._numbers) > _KEPT:
            self._numbers.pop(next(iter(self._numbers)))
        return True

    def need_numbers(self, call: Call, error: Exception) -> None:
        """Note that such calls were captured with numbers for all open sizes, because of ``error``, if they were."""
        if self.key(call)[0] != _NUMBERS:
            return
        if not self._never_symbols:
            warn_user(
                f"{self._name} is captured and compiled for each combination of the sizes that input_spec leaves open, "
                f"since one program cannot serve all of them: {error}"
            )
        self._never_symbols.add(matched_key(self.spec, call, self._name))

    def _has_known(self, kind: Any, call: Call) -> bool:
        """Whether the call's sizes are the numbers that are known of its kind."""
        known = self._known.get(kind)
        if known is None:
            return True
        types = zip(traced_types(call, self.spec), call.tensors, strict=True)
        pairs = [pair for type, x in types for pair in zip(type.shape, x.payload.shape, strict=True)]
        return all(known.get(str(symbol), n) == n for symbol, n in pairs)

"""What runs where the graph of a function breaks: its parts, each captured and compiled like a function of its own, and
Python between them.

A part is not kept as a program where that could give other results than Python: where variables that it gives are
containers or share memory with what it was given, where it gives gradients to what it was given, and where it changed
Python objects, as far as guards see them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from argosy.jit.arguments import Call
from argosy.jit.automatic_sizes import AutomaticSizes
from argosy.jit.captures import CaptureRefusal
from argosy.jit.compiled import CompiledCall, Effects, OutputTree, Position
from argosy.jit.conversion.split import split_function
from argosy.jit.guards import Guards
from argosy.jit.static_function import StaticFunction
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_tensorcore.tensor import Tensor

__all__ = ["Part", "Pieces"]

_MOST = 16  # captures of one part: what it is given changes too much
_MUTABLE = (list, dict, set, bytearray, np.ndarray)
_PLAIN = (int, bool, str, bytes, complex, type(None), float)


class Pieces:
    """A function whose graph broke at some ``lines``, cut there: calling it runs parts and the Python between them."""

    def __init__(self, function: Any, lines: set[int], options: dict[str, Any]) -> None:
        self.function = function
        self.lines = lines
        self.parts: list[Part] = []
        plain = function.__func__ if isinstance(function, MethodType) else function
        found = None
        if isinstance(plain, FunctionType) and lines:
            found = split_function(plain, lines, lambda part: Part(part, **options))
        self.run: Callable[..., Any] = function
        if found is not None:
            self.parts = found[1]  # type: ignore[assignment]
            self.run = MethodType(found[0], function.__self__) if isinstance(function, MethodType) else found[0]

    @property
    def compiled(self) -> list[CompiledCall]:
        """The programs of the parts so far, those of parts of parts included."""
        return [call for part in self.parts for call in part.all_compiled]


class Part(StaticFunction):
    """A part as a captured function."""

    opens_sizes = False  # there is a limit to the programs of a part
    patience = 3  # the first makes an optimizer's moments

    def __init__(self, function: FunctionType, **options: Any) -> None:
        super().__init__(function, **options)
        self._kinds: tuple[Any, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the part, as a program where there is one for arguments such as these."""
        if any([type(x) is not Tensor and _is_mutable(x) for x in args]) or len(set(map(id, args))) < len(args):
            return self._function(*args)
        return super().__call__(*args)

    @property
    def all_compiled(self) -> list[CompiledCall]:
        """The programs of the part, or of its own parts."""
        return [*self.compiled, *self.parts_compiled]

    def _capture(
        self, args: Any, kwargs: Any, call: Call, key: Any, whole: bool = False, sizes: AutomaticSizes | None = None
    ) -> Any:
        if len(self.compiled) >= _MOST or not self._is_quiet(args):
            raise CaptureRefusal
        return super()._capture(args, kwargs, call, key, whole, sizes)

    def _run_plain(self, key: Any) -> None:
        if len(self._plain) < _MOST:
            self._plain.add(key)

    def _accept(self, captured: CapturedProgram, tree: OutputTree, effects: Effects, guards: Guards) -> None:
        inputs = {id(value) for value in captured.program.inputs}
        kinds = _kinds(tree.tree)
        self._kinds = self._kinds or kinds
        given = any(id(x.payload.value) in inputs for x in tree.traced)
        if effects or given or kinds != self._kinds or not (tree.tree[0] or all(map(_is_made, tree.tree[1]))):
            raise CaptureRefusal

    def _has_changed(self, guards: Guards) -> bool:
        return not guards.hold()

    def _run_around(self, key: Any) -> None:
        self._run_plain(key)


def _kinds(tree: Any) -> Any:
    """What a result is made of: a float that became an input must not make a number a tensor."""
    return tuple(map(_kinds, tree)) if isinstance(tree, tuple) else type(tree)


def _is_mutable(x: Any) -> bool:
    return any(map(_is_mutable, x)) if isinstance(x, tuple) else isinstance(x, _MUTABLE)


def _is_made(x: Any) -> bool:
    """Whether a part may give this: tensors that it made, and plain values."""
    return all(map(_is_made, x)) if isinstance(x, tuple) else type(x) in _PLAIN or type(x) is Position


StaticFunction.cut = Pieces

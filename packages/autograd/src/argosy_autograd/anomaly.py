"""Which line of a program a derivative belongs to, for errors of the backward pass, and gradients that are no numbers.

Nothing is kept unless :class:`detect_anomaly` is on: a layer at the bind point then notes the line of every application
that leaves a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from argosy_autograd.errors import DifferentiationError
from argosy_phi_ops.capture import user_location
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.dispatch import Interpreter
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autograd.tape import Node

__all__ = ["detect_anomaly", "explain", "inspected", "set_detect_anomaly"]

_lines: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
checks = 0
"""How many blocks that look for NaN are entered."""


class _Noting(Interpreter):
    """The layer that notes lines."""

    def process(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
        """See :class:`Interpreter`."""
        made = below(op, operands, attributes)
        for result in made if isinstance(made, tuple) else (made,):
            if type(result) is Tensor and result._node is not None and result._node not in _lines:
                at = user_location()
                _lines[result._node] = f"{at.file}:{at.line}, in {at.function}"
        return made


class detect_anomaly:
    """Within the block applications of operators note their line: an error in their derivative names it. With
    ``check_nan`` a backward pass in the block raises :class:`DifferentiationError` at the first derivative that gives
    NaN. Everything is slower: for finding a mistake."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check = bool(check_nan)
        self._layer = _Noting()

    def __enter__(self) -> detect_anomaly:
        global checks
        context().layers.insert(0, self._layer)  # the innermost one: it sees what is applied in the end
        AMBIENT.word += 1
        checks += self._check
        return self

    def __exit__(self, *error: object) -> None:
        global checks
        checks -= self._check
        AMBIENT.word -= 1
        context().layers.remove(self._layer)


class set_detect_anomaly:
    """Switch :class:`detect_anomaly` on or off from here on, or within a block."""

    _on: ClassVar[list[detect_anomaly]] = []

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = [each._check for each in self._on]
        self._switch([check_nan] if mode else [])

    def _switch(self, wanted: Sequence[bool]) -> None:
        while self._on:
            self._on.pop().__exit__()
        for check in wanted:
            self._on.append(detect_anomaly(check).__enter__())

    def __enter__(self) -> set_detect_anomaly:
        return self

    def __exit__(self, *error: object) -> None:
        self._switch(self._before)


def explain(node: Node, error: Exception) -> None:
    """Add to an error in the derivative of a node where it was applied, or how to find out."""
    line = _lines.get(node)
    if line is not None:
        error.add_note(f"this is the derivative of {node.name}, which was applied at {line}")
    else:
        error.add_note(
            f"this is the derivative of {node.name}; with autograd.detect_anomaly(): around the program, the line that "
            "applied it is named here"
        )


def inspected(node: Node, gradients: Sequence[Any]) -> Sequence[Any]:
    """``gradients``, which the derivative of a node gave. Raises :class:`DifferentiationError` where one has NaN."""
    for i, g in enumerate(gradients):
        array = g.payload.ndarray if type(g) is Tensor and not g.payload.is_traced else g
        if isinstance(array, np.ndarray) and array.dtype.kind in "fc" and np.isnan(array).any():
            raise DifferentiationError(f"the derivative of {node.name} with respect to operand {i} has NaN")
    return gradients

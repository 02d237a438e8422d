"""Which line of a program a derivative belongs to, for errors of the backward pass, and gradients that are no numbers.

What lets no gradient pass is known always (`argosy_phi_ops.eager.gradient_blockers`). Nothing else is kept unless
:class:`detect_anomaly` is on: a layer at the bind point then notes the line of every application that leaves a node;
gradients note their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from argosy_autograd.errors import DifferentiationError, asked_for, plain_name
from argosy_autograd.history import request_order
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.eager.dispatch import Interpreter
from argosy_phi_ops.eager.gradient_blockers import GradientBlocker, count_orders
from argosy_phi_ops.user_line import user_location
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autograd.tape import Edge, Node

__all__ = [
    "count_derivatives",
    "depth",
    "describe_request",
    "detect_anomaly",
    "explain",
    "inspect_gradients",
    "note_gradients",
    "note_line",
    "note_order",
    "reasons",
    "set_detect_anomaly",
]  # fmt: skip

_lines: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_orders: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
checks = 0
"""How many blocks that look for NaN are entered."""
_blocks = 0
_ORDER = "derivative_order"  # in a tensor's ``__dict__``


class _LineLayer(Interpreter):
    """The layer that notes lines."""

    def process(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
        """See :class:`Interpreter`."""
        made = below(op, operands, attributes)
        read = [x for x in _flatten(operands) if type(x) is Tensor]
        for result in made if isinstance(made, tuple) else (made,):
            if type(result) is Tensor:
                if result._node is not None and result._node not in _lines:
                    _lines[result._node] = _line()
                _pass_on(read, result)
        return made


def note_line(node: Node, always: bool = False) -> None:
    """Note the line of an application that is no operator's, or that has no derivative: that ``always``."""
    if _blocks or always:
        _lines[node] = _line()


def _flatten(operands: Sequence[Any]) -> list[Any]:
    return [x for each in operands for x in (each if isinstance(each, (tuple, list)) else (each,))]


def _line() -> str:
    at = user_location()
    return f"{at.file}:{at.line}, in {at.function}"


def _pass_on(read: Sequence[Tensor], result: Tensor) -> None:
    """Note in a result of what order of derivative it is."""
    order = _order(read)
    if order:
        result.__dict__[_ORDER] = order


def _order(tensors: Sequence[Tensor]) -> int:
    return max((x.__dict__.get(_ORDER, 0) for x in tensors), default=0)


def note_gradients(ends: Sequence[Tensor], gradients: Sequence[Tensor | None], recorded: bool) -> None:
    """Note the order of gradients of ``ends``, and that one is a constant; ``recorded``: they should have gradients."""
    constants = [g for g in gradients if g is not None and g._node is None and g.stop_gradient] if recorded else []
    if not (_blocks or constants):
        return
    order = depth(ends) + 1
    for g in gradients:
        if g is not None:
            g.__dict__[_ORDER] = order
    if constants:
        blocker = GradientBlocker(f"the derivative of order {order}", f"is a constant: {_constant_reason(ends)}")
        for g in constants:
            g._gradient_blockers = (blocker,)


def _constant_reason(ends: Sequence[Tensor]) -> str:
    """What was differentiated: it is linear, flat, or gives a derivative without recording it."""
    names = list(dict.fromkeys(_place(node) for node, _ in _history(_edges(ends))))
    return f"see {', '.join(names[:_MOST_NAMES])}"


def _flat_derivatives(ends: Sequence[Tensor]) -> list[str]:
    """The derivatives on the way back from ``ends`` that read what they do not move with."""
    stack = _edges(ends)
    seen = set(stack)
    found: dict[str, None] = {}
    while stack:
        node, slot = stack.pop()
        onward = list(node.onward(slot))
        if len(onward) < len(node.edges or ()):
            line = _lines.get(node)
            place = "" if line is None else f" ({line})"
            found[f"on the way, {node.name}{place} does not depend on all that it reads"] = None
        more = {edge for edge in onward if edge is not None and type(edge[0]) is not Tensor} - seen
        seen |= more
        stack.extend(more)
    return list(found)


def depth(ends: Sequence[Tensor], most: float = inf) -> int:
    """How many derivatives, one of the other, ``ends`` are: the operators of each are named after those before, and
    the answers to requests that ran as one program are marked. ``most``: how many steps of the history are looked at,
    the last ones."""
    deepest = max(_order(ends), *(blocker.order for blocker in _gradient_blockers(ends)), 0)
    for node, slot in _history(_edges(ends), most):
        noted = _orders.get(node, 0) if _orders else 0
        deepest = max(deepest, noted, plain_name(node.name)[1], request_order(node, slot))
    return deepest


def note_order(ends: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """Note of which order ``gradients`` of ``ends`` are, where neither names nor marks of operators tell: a function
    with a derivative of its own is on the way."""
    order = depth(ends) + 1
    for g in gradients:
        if g is not None and g._node is not None:
            _orders[g._node] = max(order, _orders.get(g._node, 0))


def count_derivatives() -> None:
    """Let blockers know how many derivatives there are before them. It is called with the first derivative that may be
    differentiated: before, there are none."""
    count_orders(partial(depth, most=_LONGEST))


_LONGEST = 500
"""Steps of a history that a blocker counts derivatives in: they may be gone when somebody asks."""


def _edges(ends: Sequence[Tensor]) -> list[Edge]:
    return [(y._node, y._slot) for y in ends if y._node is not None]


def _gradient_blockers(ends: Sequence[Tensor]) -> list[GradientBlocker]:
    """What lets no gradient pass on the way to ``ends``."""
    return list(dict.fromkeys(blocker for y in ends for blocker in y._gradient_blockers or ()))


def _describe_origin(blocker: GradientBlocker) -> list[Edge]:
    """Where its operands came from, as far as that lives."""
    return [(found, slot) for each, slot in blocker.before if (found := each()) is not None]


def _history(ends: Sequence[Edge], most: float = inf) -> list[Edge]:
    """The nodes before ``ends``, each with a result that was used, by the way back; ``most`` of them, the last ones or
    so."""
    seen: dict[Edge, None] = {}
    stack = [edge for edge in ends if type(edge[0]) is not Tensor]
    while stack and len(seen) < most:
        edge = stack.pop()
        if edge not in seen:
            seen[edge] = None
            node, slot = edge
            stack.extend(to for to in node.onward(slot) if to is not None and type(to[0]) is not Tensor)
    return list(seen)


def describe_request(ends: Sequence[Tensor], order: int = 1) -> str:
    """Which derivative is asked for by who asks for one of ``ends`` of ``order``, and the line that does."""
    known = any(
        y._node is not None or y._gradient_blockers or _ORDER in y.__dict__ or not y.stop_gradient for y in ends
    )
    return asked_for(depth(ends) + order) + ("" if known else ", or of a higher one, as their history ends there")


def annotate_error(ends: Sequence[Tensor], error: Exception) -> None:
    """Let ``error``, of a backward pass from ``ends``, tell what was asked for: in its text where that is ours."""
    if _ASKED in str(error):
        return
    if isinstance(error, (DifferentiationError, NotImplementedError)):
        error.args = (f"{error}; {describe_request(ends)}",)
    else:
        error.add_note(describe_request(ends))


_ASKED = "asked for a derivative"


def reasons(ends: Sequence[Tensor], x: Tensor) -> str:
    """Why ``ends`` do not depend on ``x``, as far as it is known: what let no gradient pass on the way, or what their
    history tells."""
    blockers = [f"on the way, {blocker}" for blocker in _gradient_blockers(ends) if _may_hide(blocker, x)]
    found = [*blockers, *_flat_derivatives(ends)]
    if found:
        return "; ".join(found)
    made = list(dict.fromkeys(_place(y._node) for y in ends if y._node is not None))
    if made:
        return f"they were made by {', '.join(made[:_MOST_NAMES])} from other tensors"
    return (
        "no operation is recorded that made them: they are constants or integers, or were computed from such or by "
        "numpy"
    )


def _may_hide(blocker: GradientBlocker, x: Tensor) -> bool:
    """Whether ``x`` is before the blocker, as far as what is before it lives."""
    before = _describe_origin(blocker)
    if len(before) < len(blocker.before) or not before:
        return True
    source = (id(x if x._node is None else x._node), x._slot)
    onward = (edge for node, slot in _history(before) for edge in node.onward(slot) if edge is not None)
    return any((id(end), slot) == source for end, slot in chain(before, onward))


_MOST_NAMES = 4


def _place(node: Node) -> str:
    line = _lines.get(node)
    return node.name if line is None else f"{node.name} ({line})"


class detect_anomaly:
    """Within the block applications of operators note their line: an error in their derivative names it. With
    ``check_nan`` a backward pass in the block raises :class:`DifferentiationError` at the first derivative that gives
    NaN. Everything is slower: for finding a mistake."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check = bool(check_nan)
        self._layer = _LineLayer()

    def __enter__(self) -> detect_anomaly:
        global checks, _blocks
        _blocks += 1
        context().put_everywhere(self._layer)  # the innermost one: it sees what is applied in the end
        AMBIENT.word += 1
        checks += self._check
        return self

    def __exit__(self, *error: object) -> None:
        global checks, _blocks
        _blocks -= 1
        checks -= self._check
        AMBIENT.word -= 1
        context().take_everywhere(self._layer)


class set_detect_anomaly:
    """Switch :class:`detect_anomaly` on or off from here on, or within a block."""

    _on: ClassVar[list[detect_anomaly]] = []

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._checks_before = [each._check for each in self._on]
        self._switch([check_nan] if mode else [])

    def _switch(self, wanted: Sequence[bool]) -> None:
        while self._on:
            self._on.pop().__exit__()
        for check in wanted:
            self._on.append(detect_anomaly(check).__enter__())

    def __enter__(self) -> set_detect_anomaly:
        return self

    def __exit__(self, *error: object) -> None:
        self._switch(self._checks_before)


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


def inspect_gradients(node: Node, gradients: Sequence[Any]) -> Sequence[Any]:
    """``gradients``, which the derivative of a node gave. Raises :class:`DifferentiationError` where one has NaN."""
    for i, g in enumerate(gradients):
        array = g.payload.ndarray if type(g) is Tensor and not g.payload.is_traced else g
        if isinstance(array, np.ndarray) and array.dtype.kind in "fc" and np.isnan(array).any():
            raise DifferentiationError(f"the derivative of {node.name} with respect to operand {i} has NaN")
    return gradients

"""One captured and compiled call: the fast path of ``to_static``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.jit.arguments import Call, tensors_in
from argosy.jit.guards import Guards
from argosy.jit.open_sizes import SizeBounds
from argosy.jit.places import Place
from argosy.jit.slots import GradientSlots, write_over
from argosy.jit.structure import map_items
from argosy.jit.value_sizes import ValueSize, payloads_of
from argosy_autograd.gradients import accumulate_grad
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.compiler import Executable
from argosy_tensorcore.tensor import Tensor

__all__ = ["CompiledCall", "Effects", "OutputTree", "Position"]

_wrap = Tensor._wrap


class OutputTree:
    """What the function returned while it was captured, with positions in place of its traced tensors.

    What it ``assigned`` to places (a layer's attributes, say) are results, too.
    """

    __slots__ = ("assigned", "bare", "count", "traced", "tree")

    def __init__(self, result: Any, assigned: Sequence[tuple[Place, Tensor]] = ()) -> None:
        self.traced: list[Tensor] = []
        self.tree = tensors_in(result, self._position)
        self.bare = type(result) is Tensor and bool(self.traced) and not assigned
        self.assigned = [(place, self._position(tensor)) for place, tensor in assigned]
        self.count = len(self.traced)

    def forget(self) -> None:
        """Keep no traced tensor, which would keep the whole program that it was captured in."""
        self.traced = []

    def _position(self, tensor: Tensor) -> Any:
        if not tensor.payload.is_traced:
            return tensor
        self.traced.append(tensor)
        return Position(len(self.traced) - 1)

    def fill(self, made: list[Tensor]) -> Any:
        """The function's result for one call, with these in place of the traced tensors. Assigns what it assigned."""
        for place, value in self.assigned:
            place.put(_fill(value, made))
        return _fill(self.tree, made)


class Position:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


def _fill(x: Any, made: list[Tensor]) -> Any:
    return made[x.at] if type(x) is Position else map_items(x, lambda item: _fill(item, made))


class Effects:
    """What a function did to its arguments: positions of those ``written`` in place and of those given gradients.

    Their values follow the results among the program's outputs, in this order.
    """

    __slots__ = ("graded", "written")

    def __init__(self, written: list[int], graded: list[int]) -> None:
        self.written = written
        self.graded = graded

    def __bool__(self) -> bool:
        return bool(self.written or self.graded)

    def apply(self, tensors: list[Tensor], payloads: list[Any]) -> None:
        """Write values and gradients of one call to its arguments; gradients are added to those that are there."""
        values = iter(payloads)
        for i in self.written:
            write_over(tensors[i], next(values))
        for i in self.graded:
            accumulate_grad(tensors[i], _gradient_for(tensors[i], next(values)))


def _gradient_for(tensor: Tensor, value: Any) -> Any:
    """A gradient that a program gave, as an array, or laid out like the distributed tensor that it is of."""
    adopt = getattr(tensor.payload, "adopt_gradient", None)
    return value.to_host() if adopt is None else adopt(_wrap(value))


class CompiledCall:
    """An executable bound to its states, with the guards under which it is valid."""

    __slots__ = (
        "bound", "carried", "effects", "executable", "fixed", "guards", "route", "run", "runtime", "sizes",
        "slots", "tree", "value_sizes",
    )  # fmt: skip

    def __init__(
        self,
        captured: CapturedProgram,
        executable: Executable,
        tree: OutputTree,
        effects: Effects,
        guards: Guards,
        fixed: list[tuple[int, float]],
        runtime: list[int],
    ) -> None:
        self.carried: Sequence[Place] = ()  # places whose tensors are inputs after those of the call
        self.executable = executable
        self.tree = tree
        tree.forget()
        self.effects = effects if effects else None
        self.guards = guards
        self.bound = [(tensor, tensor.payload) for tensor in captured.states]
        self.run: Callable[[list[Any]], list[Any]] = executable.bind([payload for _, payload in self.bound])
        self.slots = GradientSlots(captured, guards.leaves)
        self.fixed = fixed
        self.runtime = runtime
        self.sizes: SizeBounds | None = None  # where an input_spec leaves sizes open
        self.value_sizes: Sequence[ValueSize] = ()  # those whose numbers are not known are its last inputs
        self.route: Any = None  # the short way of such calls (`argosy.jit.fast_path`), False where there is none

    def valid(self, call: Call) -> bool:
        """Whether fixed floats, states, gradient slots, guarded Python values and sizes that values tell are those of
        the capture."""
        for i, value in self.fixed:
            if call.floats[i] != value:
                return False
        return self.is_valid() and (not self.value_sizes or self._has_sizes(call))

    def is_valid(self) -> bool:
        """Whether states, gradient slots and guarded Python values are those of the capture."""
        for tensor, payload in self.bound:
            if tensor.payload is not payload:
                return False
        return self.slots.hold() and self.guards.hold()

    def _has_sizes(self, call: Call) -> bool:
        """Whether sizes that are numbers in the program are these in the call."""
        fixed = [size for size in self.value_sizes if size.number is not None]
        payloads = self.payloads(self.add_carried(call)) if fixed else []
        return all(size.of(payloads) == size.number for size in fixed)

    @property
    def program(self) -> Any:
        """The program as it was compiled."""
        return self.executable.program

    @property
    def is_plain(self) -> bool:
        """Whether a call leaves nothing but results: its inputs are its tensors, none is written or given gradients."""
        return not (self.runtime or self.value_sizes or self.slots.final) and self.effects is None

    def why_not(self) -> str:
        """Why this capture does not serve a call any more, in words; empty when states and guards hold."""
        for tensor, payload in self.bound:
            if tensor.payload is not payload:
                return f"{tensor.name} has other memory than when it was captured"
        return self.guards.broken_guard() or ("" if self.slots.hold() else "gradients come and go")

    def __call__(self, call: Call) -> Any:
        """Execute; returns what the function would."""
        if self.carried:
            call = self.add_carried(call)
        payloads = [x.payload for x in call.tensors]
        if self.runtime or self.value_sizes:
            payloads = self.payloads(call)
        outputs = self.run(payloads)
        if self.slots.final:
            self.slots.set(outputs)
        tree = self.tree
        if self.effects is not None:
            self.effects.apply(call.tensors, outputs[tree.count :])
        return _wrap(outputs[0]) if tree.bare else tree.fill([_wrap(payload) for payload in outputs])

    def add_carried(self, call: Call) -> Call:
        """The call with the tensors at the carried places as its last ones."""
        return Call([*call.tensors, *(place.get() for place in self.carried)], call.key, call.floats)

    def payloads(self, call: Call) -> list[Any]:
        """The program's inputs: the call's tensors, the floats that change, what is as long as values tell."""
        made = payloads_of(call, self.runtime)
        for size in self.value_sizes:
            if size.number is None:
                made.append(size.input(made))
        return made

    def execute(self, call: Call) -> list[Any]:
        """The payloads of the traced results."""
        return self.run(self.payloads(call))

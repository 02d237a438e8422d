"""The step of one microbatch, captured whole and cut into the pieces of stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.pipeline.placing import StageMeshes
from argosy.jit import lowering
from argosy.jit.arguments import Call, flatten
from argosy.jit.compiled import CompiledCall, Effects, OutputTree
from argosy.jit.guards import Guards
from argosy.jit.partitioned_program import layouts_of
from argosy.jit.static_function import StaticFunction
from argosy_autoparallel.pipeline.cut import Cut, cut
from argosy_autoparallel.pipeline.stages import assign_stages, tag_gradient_hooks
from argosy_autoparallel.schedule import ScheduleError
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.context import context
from argosy_pir import Program

__all__ = ["CapturedStep", "PipelinedFunction"]


class _CapturedOnly:
    """In the place of an executable: the captured program, which no rank runs whole."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def bind(self, states: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """Nothing that could be called."""
        return self.run

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[Any]:
        """Raises RuntimeError: pieces are run."""
        raise RuntimeError(f"{self.program.name} is cut into stages: no rank runs it whole")

    def report(self) -> dict[str, Any]:
        """Nothing was compiled."""
        return {}


class CapturedStep(CompiledCall):
    """A captured step with its pieces. ``gradients`` are positions of outputs with the tensors whose gradients they
    are; ``counter`` is the position of the state that counts random draws, if any are made; ``input_layouts`` are those
    of the function's tensors.
    """

    __slots__ = ("captured", "counter", "gradients", "input_layouts", "meshes", "whole")

    def __init__(
        self, captured: CapturedProgram, meshes: StageMeshes, whole: Cut, counter: int | None,
        input_layouts: Sequence[Layout | None], *rest: Any,
    ) -> None:  # fmt: skip
        self.input_layouts = input_layouts
        super().__init__(captured, _CapturedOnly(captured.program), *rest)
        self.captured, self.meshes, self.whole, self.counter = captured, meshes, whole, counter
        self.gradients = {position: tensor for tensor, position, _ in captured.grads if position is not None}


class PipelinedFunction(StaticFunction):
    """A function of a microbatch that is captured and cut, not run. ``split`` tells whether gradients of weights are
    pieces of their own, ``find_meshes(stages, captured)`` where stages lie, of a program with marks of so many."""

    def __init__(
        self, function: Callable[..., Any], backend: lowering.Backend, split: bool,
        find_meshes: Callable[[int, CapturedProgram], StageMeshes],
    ) -> None:  # fmt: skip
        super().__init__(function, None, backend, True)
        self._split, self._find_meshes = split, find_meshes

    def find(self, *args: Any) -> CapturedStep:
        """The captured step for arguments such as these. Raises NotImplementedError where it cannot be captured."""
        call = flatten(args, {})
        key = self._key(call)
        for compiled in self._by_key.get(key, ()):
            if compiled.valid(call):
                return compiled  # type: ignore[return-value]
        made = self._capture(args, {}, call, key, whole=True)
        assert isinstance(made, CapturedStep)
        return made

    def _lower(
        self, captured: CapturedProgram, tree: OutputTree, effects: Effects, call: Call, runtime: frozenset[int],
        guards: Guards,
    ) -> CompiledCall:  # fmt: skip
        if effects:
            raise NotImplementedError(f"{self.__name__} writes to its inputs, which stages of a pipeline do not share")
        program = captured.program
        lowering.simplify(program)
        tag_gradient_hooks(program, [position for _, position, _ in captured.grads if position is not None])
        meshes = self._find_meshes(_marked_stages(program), captured)
        stages = assign_stages(program, len(meshes.of_stages), *meshes.known_stages(captured))
        gradients = [position for _, position, _ in captured.grads if position is not None]
        counter = _counter(captured)
        counters = () if counter is None else (counter,)
        whole = cut(program, stages, len(meshes.of_stages), self._split, gradients, counters, bool(gradients))
        meshes.place(captured, whole)
        fixed = [(i, x) for i, x in enumerate(call.floats) if i not in runtime]
        layouts = layouts_of(call.tensors) or (None,) * len(call.tensors)
        return CapturedStep(captured, meshes, whole, counter, layouts, tree, effects, guards, fixed, sorted(runtime))


def _marked_stages(program: Program) -> int:
    """The number of stages. Raises ScheduleError where one has no layers."""
    marks = {int(op.annotations["stage"]) for op in program.walk() if "stage" in op.annotations}
    count = max(marks, default=0) + 1
    if empty := sorted({*range(count)} - marks):
        raise ScheduleError(f"stages {empty} of {count} have no layers: a model is cut between layers")
    return count


def _counter(captured: CapturedProgram) -> int | None:
    """The position of the state of the rank's random generator, where the step draws."""
    if not captured.draws:
        return None
    state = context().generator.state
    return next(i for i, tensor in enumerate(captured.states) if tensor is state)

"""A step of training, or a forward pass, as lists: microbatches through stages, then one update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Protocol

import numpy as np

from argosy.distributed.pipeline.capture import CapturedStep
from argosy.distributed.pipeline.gradients import Gradients
from argosy.distributed.pipeline.memory import bytes_on_rank
from argosy.distributed.pipeline.rank_list import run_list
from argosy.jit import lowering
from argosy.settings import CHECK_PROGRAMS
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_autoparallel.groups import communicators
from argosy_autoparallel.pipeline.cut import extract
from argosy_autoparallel.pipeline.local_pieces import LocalPieces, add_accumulation, localize_pieces
from argosy_autoparallel.pipeline.step_lists import LAST, UPDATE, step_lists
from argosy_autoparallel.resharding.emitter import static_shape
from argosy_autoparallel.schedule import InstructionList, Ref, Run, VerificationResult, verify
from argosy_autoparallel.schedule.runner import Held, host_array
from argosy_autoparallel.tensor_layout import Layout
from argosy_hwadapt import Device
from argosy_phi_ops.context import context
from argosy_pir import Value
from argosy_tensorcore.storage import StridedArray, host_device
from argosy_tensorcore.tensor import Tensor

__all__ = ["PipelineStep"]

Array = np.ndarray[Any, Any]
_NO_PASSES = ("report", "backward_weight")


class Hooks(Protocol):
    """What is called before and after the passes of a step: "forward" and "backward". The first ``inputs`` tensors of a
    batch go into the model."""

    inputs: int

    def begin(self, piece: str, number: int, microbatch: int, given: Sequence[Tensor]) -> None:
        """Before the ``number``-th of its direction in the step."""

    def end(self, piece: str, microbatch: int, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """After it."""


class PipelineStep:
    """The lists of all ranks for ``orders``, and this rank's pieces, compiled. ``captured`` are the steps of a
    microbatch, and of a last one of another size; ``gradients`` is where they add up. With ``updates`` the lists end
    with the update.

    Raises :class:`~argosy_autoparallel.schedule.ScheduleError` for lists that cannot run.
    """

    def __init__(
        self, captured: Sequence[CapturedStep], orders: Sequence[Sequence[Run]], microbatches: int,
        gradients: Gradients, backend: lowering.Backend, updates: bool = False,
    ) -> None:  # fmt: skip
        self.captured, self.microbatches, self.gradients, self.backend = captured, microbatches, gradients, backend
        self.device = _device_of(captured[0])
        self.functions: dict[tuple[str, int | None], Callable[..., Any]] = {}
        self._arenas: dict[tuple[str, int | None], int] = {}
        self.results = [_results(each) for each in captured]
        pieces = [self._local_pieces(each, LAST if number else "") for number, each in enumerate(captured)]
        size = context().size
        lists = step_lists(orders, pieces, microbatches, size, self.results, updates)
        lists = [replace(one, resident_bytes=self._resident_bytes(rank)) for rank, one in enumerate(lists)]
        lists[context().rank] = self._with_arenas(lists[context().rank])
        self.lists: list[InstructionList] = lists
        self.verified: VerificationResult = verify(self.lists)
        self.own = self.lists[context().rank]
        counter = captured[0].counter
        self._advance = None if counter is None else _next_random_state(captured[0], counter, backend)

    def run(
        self, microbatches: Sequence[Sequence[Tensor]], hooks: Hooks | None = None,
        update: Callable[[], None] | None = None,
    ) -> list[list[Array]]:  # fmt: skip
        """Run the list of this rank for the tensors of each microbatch, ``hooks`` around its passes, then ``update``,
        where it ends with one; returns the results of each."""
        functions = self._with_hooks(hooks) if hooks else self.functions
        if update is not None:
            functions = {**functions, UPDATE: update}
        left = run_list(self.own, functions, self._values(microbatches))
        count = range(len(self.results[0]))
        return [[host_array(left[Ref(f"result{i}", (m,))]) for i in count] for m in range(self.microbatches)]

    @property
    def peak_of_values(self) -> int:
        """The most bytes of values that are on this rank's device together, its pieces' intermediate ones included."""
        return self.verified.peaks[context().rank].device - self.own.resident_bytes

    @property
    def parameters(self) -> list[Tensor]:
        """The states of the pieces but for the random state: parameters and buffers."""
        first = self.captured[0]
        return [tensor for number, tensor in enumerate(first.captured.states) if number != first.counter]

    def _resident_bytes(self, rank: int) -> int:
        """The bytes of a rank's parameters and of its sums of gradients."""
        parameters = sum(bytes_on_rank(tensor, rank) for tensor in self.parameters)
        return parameters + self.gradients.bytes_on_rank(rank)

    def _with_arenas(self, one: InstructionList) -> InstructionList:
        """This rank's list, with what its compiled pieces need besides their inputs and outputs."""
        pieces = {key: s._replace(temporary_bytes=self._arenas.get(key, 0)) for key, s in one.pieces.items()}
        return replace(one, pieces=pieces)

    def _with_hooks(self, hooks: Hooks) -> dict[tuple[str, int | None], Callable[..., Any]]:
        """The pieces, with hooks around passes: gradients of weights that are computed apart are no pass."""
        made = dict(self.functions)
        kinds = {piece: "forward" if piece.startswith("forward") else "backward" for piece, _ in made}
        passes = [run for run in self.own if isinstance(run, Run) and not run.piece.startswith(_NO_PASSES)]
        numbers: dict[str, int] = {}
        of_pieces: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
        for run in passes:
            kind = kinds[run.piece]
            number = numbers[kind] = numbers.get(kind, -1) + 1
            of_pieces.setdefault((run.piece, run.chunk), []).append((number, run.microbatch))
        for key, runs in of_pieces.items():
            made[key] = _hooked(hooks, kinds[key[0]], iter(runs), self.functions[key], self._masks(key, hooks))
        return made

    def _masks(self, key: tuple[str, int | None], hooks: Hooks) -> tuple[list[bool], list[bool]]:
        """Which inputs of a piece come from other stages or the batch's inputs, which outputs others read."""
        chunk, pieces = key[1], self.own.pieces
        own = {port.name for (_, c), s in pieces.items() if c == chunk for port in s.outputs}
        read = {port.name for (_, c), s in pieces.items() if c != chunk for port in s.inputs}
        whole = {f"input{i}" for i in range(hooks.inputs)}
        return (
            [p.name in whole or not (p.name in own or p.name.startswith(("input", "counter")))
             for p in pieces[key].inputs],
            [p.name in read for p in pieces[key].outputs],
        )  # fmt: skip

    def _values(self, microbatches: Sequence[Sequence[Tensor]]) -> dict[Ref, Held]:
        made: dict[Ref, Held] = {}
        counts = self._counts()
        for ref in self.own.given:
            if ref.name.startswith("counter"):
                made[ref] = counts[ref.at[0]]
            else:
                payload = microbatches[ref.at[0]][int(ref.name.removeprefix("input"))].payload
                made[ref] = payload.local if type(payload) is ShardedArray else payload
        return made

    def _counts(self) -> list[Array]:
        """The random state at each microbatch; that of the rank moves on by all of them."""
        if self._advance is None:
            return []
        state = context().generator.state
        counts = [state.payload.to_host().copy()]
        for _ in range(self.microbatches):
            counts.append(self._advance(counts[-1]))
        state.payload.fill_from(counts[-1])
        state.payload.bump_version()
        return counts

    # ---- pieces

    def _local_pieces(self, captured: CapturedStep, suffix: str) -> LocalPieces:
        whole, program = captured.whole, captured.captured.program
        tensors = captured.captured.states
        inputs: dict[Value, Layout | None] = dict(zip(program.inputs, captured.input_layouts, strict=True))
        for number, state in enumerate(program.states):
            if number == captured.counter:
                inputs[state.argument] = None
        states = [captured.meshes.layouts(tensor) for tensor in tensors]
        known = {p: found for p, tensor in captured.gradients.items() if (found := self.gradients.placements(tensor))}
        meshes = captured.meshes.of_stages
        parts = {p: self.gradients.parts(tensor, meshes[0].ndim) for p, tensor in captured.gradients.items()}
        check = context().size <= (CHECK_PROGRAMS.read() or 0)
        local = localize_pieces(whole, meshes, inputs, states, context().rank, known, parts, check)
        for position, placements in local.gradients.items():
            self.gradients.add(captured.gradients[position], placements)
        for key, made in local.programs.items():
            if made is not None:
                name = key[0] + suffix, key[1]
                self.functions[name], self._arenas[name] = self._function(captured, local, key)
        self.functions["report" + suffix, None] = _hand_on
        return local

    def _function(
        self, captured: CapturedStep, local: LocalPieces, key: tuple[str, int]
    ) -> tuple[Callable[..., Any], int]:
        """A compiled piece, and the bytes of its arena."""
        piece, program = local.cut.pieces[key], local.programs[key]
        assert program is not None
        payloads = [captured.captured.states[number].payload for number in piece.states]
        bound = [p.local if type(p) is ShardedArray else p for p in payloads]
        terms = program.outputs[len(piece.outputs) :]
        for position, term in zip(piece.gradients, terms, strict=True):
            bound.append(self.gradients.sum(captured.gradients[position], static_shape(term), term.dtype))
        add_accumulation(program, len(terms))
        if not program.outputs and not program.state_updates:
            return _nothing, 0
        lowering.simplify(program, "cse,dce")
        device = next((each.device for each in bound), self.device)
        made = lowering.build(program, self.backend, device, communicators())
        return _on_buffers(made.bind(bound), device), int(made.report().get("arena_bytes", 0))


def _device_of(captured: CapturedStep) -> Device:
    """Where the parameters of this rank's stages are, or would be."""
    held = [x.payload for x in captured.captured.states if type(x.payload) is ShardedArray and x.payload.is_held]
    return held[0].local.device if held else host_device()


def _results(captured: CapturedStep) -> list[Value]:
    """What the function gave: the first outputs of the program."""
    return list(captured.captured.program.outputs[: captured.captured.outputs])


def _on_buffers(
    run: Callable[[Sequence[StridedArray]], list[StridedArray]], device: Device
) -> Callable[..., list[StridedArray]]:
    """A function of values wherever they are: what messages bring are arrays."""
    return lambda *values: run([_on_device(value, device) for value in values])


def _on_device(value: Held, device: Device) -> StridedArray:
    if type(value) is StridedArray and value.device is device:
        return value
    array = host_array(value)
    return StridedArray(array) if device is host_device() else StridedArray.from_array(array, device)


def _hooked(
    hooks: Hooks, kind: str, runs: Iterator[tuple[int, int]], function: Callable[..., Any],
    masks: tuple[Sequence[bool], Sequence[bool]],
) -> Callable[..., Any]:  # fmt: skip
    def call(*values: Held) -> Any:
        number, microbatch = next(runs)
        given = [_as_tensor(value) for value in compress(values, masks[0])]
        hooks.begin(kind, number, microbatch, given)
        made = function(*values)
        hooks.end(kind, microbatch, given, [_as_tensor(value) for value in compress(made, masks[1])])
        return made

    return call


def _as_tensor(value: Held) -> Tensor:
    return Tensor._wrap(value if isinstance(value, StridedArray) else StridedArray(value))


def _hand_on(*values: Held) -> list[Array]:
    return [np.array(host_array(value)) for value in values]


def _nothing(*values: Held) -> tuple[()]:
    return ()


def _next_random_state(captured: CapturedStep, counter: int, backend: lowering.Backend) -> Callable[[Array], Array]:
    """The function of the random state that gives its next value. Raises NotImplementedError where that depends on
    data: how often branches and loops draw."""
    program = captured.captured.program
    try:
        step = extract(program, [program.state_updates[counter]], [program.states[counter].argument])
    except KeyError:
        raise NotImplementedError(
            "random numbers are drawn in a branch or a loop of data: how often is not known before a microbatch has "
            "run, so the next one cannot begin"
        ) from None
    call = lowering.build(step, backend, host_device()).bind([])
    return lambda state: call([StridedArray(state)])[0].to_host().copy()

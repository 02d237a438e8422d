"""Walking lists: one rank's over a communicator (threads, processes), or all ranks' in step in one thread.

A rank is a generator that yields what it has to wait for; who drives it waits, or lets another rank go on meanwhile.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import GeneratorType
from typing import Any, TypeAlias

import numpy as np

from argosy_autoparallel.schedule.instructions import (
    Free,
    Instruction,
    Move,
    Receive,
    Ref,
    Run,
    Send,
    Start,
    Update,
    Wait,
)
from argosy_autoparallel.schedule.lists import InstructionList, Port, ScheduleError, groups_of
from argosy_autoparallel.schedule.machine import result_type
from argosy_autoparallel.schedule.matching import Place
from argosy_autoparallel.schedule.position import Position
from argosy_hwadapt import calls, inproc
from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.communicator import Communicator, Handle
from argosy_hwadapt.errors import CommunicatorError
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray

__all__ = [
    "Held", "InstructionError", "Observer", "PieceFunction", "host_array", "open_groups", "run", "run_in_step",
    "run_on_threads",
]  # fmt: skip

Held: TypeAlias = Array | StridedArray
"""What a rank holds of a value: an array, or a buffer on some device, of which messages take what the host has."""
PieceFunction = Callable[..., Any]
"""Values to a value or a tuple of values, or a generator that yields handles to wait for and returns them."""
Pieces = Mapping[tuple[str, int | None], PieceFunction]
Communicators = Mapping[tuple[int, ...], Communicator]
Observer = Callable[[Place, Mapping[Ref, Any]], None]
Steps = Generator[Handle, None, dict[Ref, Held]]


class InstructionError(RuntimeError):
    """An instruction failed: ``place`` tells rank, number, instruction and the user's line; ``cause`` is the error."""

    def __init__(self, place: Place, cause: BaseException) -> None:
        super().__init__(f"{place}: {type(cause).__name__}: {cause}")
        self.place, self.cause = place, cause


def run(
    one: InstructionList, pieces: Pieces, values: Mapping[Ref, Held], communicators: Communicators,
    observer: Observer | None = None, folder: str | None = None, position: Position | None = None,
) -> dict[Ref, Held]:  # fmt: skip
    """Walk a rank's list; returns the values that are left.

    ``pieces`` are functions by (name, chunk), chunk None for all that have none of their own; ``communicators`` by
    group, () being all ranks: see :func:`open_groups`. ``observer`` is called after each instruction. Values on disk
    are files without a name in ``folder``. ``position`` tells whoever watches where the rank is.

    Raises :class:`InstructionError` for a piece that raises, and errors of the communicator as they are.
    """
    steps = walk(one, pieces, values, communicators, observer, folder, position)
    try:
        while True:
            next(steps).wait()
    except StopIteration as stop:
        left: dict[Ref, Held] = stop.value
        return left


def open_groups(world: Communicator, groups: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], Communicator]:
    """The communicators of a rank: of all ranks, and of those ``groups`` that it is in. Every rank calls with the same
    groups: :func:`~argosy_autoparallel.schedule.lists.groups_of`.
    """
    everyone = tuple(range(world.size))
    found: dict[tuple[int, ...], Communicator] = {(): world, everyone: world}
    for group in groups:
        if group == everyone:
            continue
        member = world.rank in group
        part = world.split(0 if member else -1, group.index(world.rank) if member else 0)
        if part is not None:
            found[group] = part
    return found


def run_on_threads(
    lists: Sequence[InstructionList], pieces: Sequence[Pieces], values: Sequence[Mapping[Ref, Held]],
    wrap: Callable[[Communicator], Communicator] = lambda communicator: communicator, timeout: float = 60,
    observer: Observer | None = None,
) -> list[dict[Ref, Held]]:  # fmt: skip
    """Walk the lists of all ranks, a thread each; returns what is left on each. ``wrap`` may put a modelled link around
    each rank's communicator.
    """
    groups = groups_of(lists)

    def rank(world: Communicator) -> dict[Ref, Held]:
        r = world.rank
        return run(lists[r], pieces[r], values[r], open_groups(wrap(world), groups), observer)

    return inproc.run_ranks(rank, len(lists), timeout)


def run_in_step(
    lists: Sequence[InstructionList], pieces: Sequence[Pieces], values: Sequence[Mapping[Ref, Held]],
    observer: Observer | None = None,
) -> list[dict[Ref, Held]]:  # fmt: skip
    """Walk the lists of all ranks in this thread, one rank as far as it comes, then the next.

    Raises :class:`ScheduleError` when none can go on.
    """
    members = inproc.communicators(len(lists))
    tables = _groups_in_step(members, groups_of(lists))
    walks = {r: walk(lists[r], pieces[r], values[r], tables[r], observer) for r in range(len(lists))}
    left: list[dict[Ref, Held]] = [{} for _ in lists]
    waits: dict[int, Handle | None] = dict.fromkeys(walks)
    while walks:
        ready = [rank for rank, handle in waits.items() if handle is None or handle.done()]
        if not ready:
            raise ScheduleError(f"ranks {sorted(waits)} wait for each other, or for one that has ended")
        for rank in ready:
            waited = waits[rank]
            try:
                if waited is not None:
                    waited.wait()
                waits[rank] = next(walks[rank])
            except StopIteration as stop:
                left[rank] = stop.value
                del walks[rank], waits[rank]
    return left


def _groups_in_step(
    members: Sequence[inproc.InprocCommunicator], groups: Iterable[tuple[int, ...]]
) -> list[dict[tuple[int, ...], Communicator]]:
    everyone = tuple(range(len(members)))
    tables: list[dict[tuple[int, ...], Communicator]] = [{(): member, everyone: member} for member in members]
    for group in groups:
        if group == everyone:
            continue
        for rank, part in zip(group, inproc.subgroup(members, group), strict=True):
            tables[rank][group] = part
    return tables


def walk(
    one: InstructionList, pieces: Pieces, values: Mapping[Ref, Held], communicators: Communicators,
    observer: Observer | None = None, folder: str | None = None, position: Position | None = None,
) -> Steps:  # fmt: skip
    """The steps of a rank: yields handles that must be waited for before it goes on, returns the values left."""
    state = _Rank(one, pieces, dict(values), communicators, folder)
    present = [0] if position is None else position.begin(one)
    for number, instruction in enumerate(one.instructions):
        state.number = present[0] = number
        try:
            waits = _STEPS[type(instruction)](state, instruction)
            if waits is not None:
                yield from waits
        except (CommunicatorError, InstructionError):
            raise
        except Exception as cause:
            raise InstructionError(state.place, cause) from cause
        if observer is not None:
            observer(state.place, state.values)
    if position is not None:
        position.end()
    return state.values


class _Rank:
    """The state of a walk. ``values`` has what is there, ``started`` what is on its way, with its handle."""

    def __init__(
        self, one: InstructionList, pieces: Pieces, values: dict[Ref, Held], communicators: Communicators,
        folder: str | None,
    ) -> None:  # fmt: skip
        self.one, self.pieces, self.values, self.communicators = one, pieces, values, communicators
        self.folder = folder
        self.world = communicators[()]
        self.started: dict[Ref, tuple[Handle, Array]] = {}
        self.number = 0

    @property
    def place(self) -> Place:
        """Where the walk is."""
        return Place(self.world.rank, self.number, self.one.instructions[self.number])

    def run(self, instruction: Run | Update) -> Generator[Handle, None, None] | None:
        signature = self.one.signature(instruction)
        key = instruction.piece, instruction.chunk
        function = self.pieces.get(key) or self.pieces.get((instruction.piece, None))
        if signature is None or function is None:
            raise ScheduleError(f"there is no piece {instruction.piece!r} for chunk {instruction.chunk}")
        microbatch = instruction.microbatch if type(instruction) is Run else 0
        chunk = instruction.chunk
        result = function(*[self.values[port.ref(chunk, microbatch)] for port in signature.inputs])
        if type(result) is GeneratorType:
            return self._finish(result, signature.outputs, chunk, microbatch)
        self._store(result, signature.outputs, chunk, microbatch)
        return None

    def _finish(
        self, steps: Generator[Handle, None, Any], ports: tuple[Port, ...], chunk: int, microbatch: int
    ) -> Generator[Handle, None, None]:
        result = yield from steps
        self._store(result, ports, chunk, microbatch)

    def _store(self, result: Any, ports: tuple[Port, ...], chunk: int, microbatch: int) -> None:
        results = result if isinstance(result, (tuple, list)) else () if result is None else (result,)
        if len(results) != len(ports):
            raise ScheduleError(f"the piece gives {len(results)} values, its signature has {len(ports)}")
        for port, made in zip(ports, results, strict=True):
            if made.shape != port.type.shape or made.dtype.name != port.type.dtype:
                raise ScheduleError(
                    f"the piece gives {port.name} as {made.dtype.name} {list(made.shape)}, not {port.type}"
                )
            self.values[port.ref(chunk, microbatch)] = made

    def start(self, start: Start) -> None:
        communicator = self.communicators[start.group]
        value = np.ascontiguousarray(host_array(self.values[start.value]))
        type = _type_of(value)
        made = result_type(start, start, type, communicator.size)
        result = value if start.result == start.value else _allocate(made)
        options = dict(start.options)
        if start.collective == "permute":
            handle = communicator.start_permute(value, result, options["pairs"])
        else:
            handle = self._begin(communicator, _CALLS[start.collective](communicator, value, result, options))
        if result is value:
            del self.values[start.value]
        self.started[start.result] = handle, result

    def _begin(self, communicator: Communicator, call: Call) -> Handle:
        call.site = self.place  # printed when somebody asks
        return communicator.start(call.in_background())

    def receive(self, receive: Receive) -> None:
        result = _allocate(receive.type)
        call = calls.recv(self.world.size, result, receive.source, receive.tag)
        self.started[receive.value] = self._begin(self.world, call), result

    def send(self, send: Send) -> None:
        self.world.send(np.ascontiguousarray(host_array(self.values[send.value])), send.to, send.tag)

    def wait(self, wait: Wait) -> Generator[Handle, None, None]:
        handle, result = self.started.pop(wait.value)
        yield handle
        self.values[wait.value] = result

    def move(self, move: Move) -> None:
        value = host_array(self.values[move.value])
        self.values[move.value] = self._on_disk(value) if move.to == "disk" else np.array(value)

    def _on_disk(self, value: Array) -> Array:
        folder = tempfile.gettempdir() if self.folder is None else self.folder
        free = shutil.disk_usage(folder).free
        if free < value.nbytes:
            raise OSError(f"{folder} has {free} bytes left, {value.nbytes} are needed")
        if not value.nbytes:
            return value
        with tempfile.TemporaryFile(dir=folder) as file:
            mapped: Array = np.memmap(file, value.dtype, "w+", shape=value.shape)
        mapped[...] = value
        return mapped

    def free(self, free: Free) -> None:
        del self.values[free.value]


def host_array(value: Held) -> Array:
    """A value as the host has it: memory that it sees is shared."""
    return value.to_host() if isinstance(value, StridedArray) else value


def _allocate(type: TensorType) -> Array:
    shape: Any = type.shape
    return np.empty(shape, as_dtype(type.dtype).numpy)


def _type_of(value: Array) -> TensorType:
    return TensorType(value.shape, value.dtype.name)


def _exchange(c: Communicator, value: Array, result: Array, options: Mapping[str, Any]) -> Call:
    if "send_counts" not in options:
        return calls.all_to_all(c.size, value, result, None, None)
    row = int(np.prod(value.shape[1:], dtype=np.int64))
    sent, taken = ([count * row for count in options[name]] for name in ("send_counts", "recv_counts"))
    return calls.all_to_all(c.size, value, result, sent, taken)


def _broadcast(c: Communicator, value: Array, result: Array, options: Mapping[str, Any]) -> Call:
    result[...] = value
    return calls.broadcast(c.rank, c.size, result, options.get("root", 0))


_CALLS: dict[str, Callable[[Communicator, Array, Array, Mapping[str, Any]], Call]] = {
    "all_reduce": lambda c, value, result, o: calls.all_reduce(c.size, value, result, o.get("op", "sum")),
    "all_gather": lambda c, value, result, o: calls.all_gather(c.size, value, result),
    "reduce_scatter": lambda c, value, result, o: calls.reduce_scatter(c.size, value, result, o.get("op", "sum")),
    "all_to_all": _exchange,
    "broadcast": _broadcast,
}

_STEPS: dict[type[Instruction], Callable[[_Rank, Any], Generator[Handle, None, None] | None]] = {
    Run: _Rank.run, Update: _Rank.run, Start: _Rank.start, Wait: _Rank.wait, Send: _Rank.send,
    Receive: _Rank.receive, Move: _Rank.move, Free: _Rank.free,
}  # fmt: skip

"""A captured step that is not cut: a list of one run, so that passes, sums and update stay one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.pipeline.rank_list import run_list
from argosy.jit import lowering
from argosy.jit.partitioned_program import PartitionedExecutable
from argosy.jit.static_function import StaticFunction
from argosy_autoparallel.schedule import InstructionError, InstructionList, Port, Ref, Run, Signature, verify
from argosy_phi_ops.compiler import Executable
from argosy_pir import Program, TensorType
from argosy_pir.dims import evaluate_dim
from argosy_pir.values import Value
from argosy_tensorcore.storage import StridedArray

__all__ = ["ScheduledExecutable", "ScheduledFunction"]

Shapes = tuple[tuple[int, ...], ...]


class ScheduledFunction(StaticFunction):
    """A captured function whose programs are run by lists, as the piece ``piece``."""

    def __init__(self, function: Callable[..., Any], backend: lowering.Backend, piece: str) -> None:
        super().__init__(function, None, backend, True)
        self._piece = piece

    def _finish(self, executable: Executable, program: Program) -> Executable:
        if isinstance(executable, PartitionedExecutable):
            local = executable.local
            executable.local = ScheduledExecutable(local, local.program, self._piece)  # type: ignore[assignment]
            return executable
        return ScheduledExecutable(executable, program, self._piece)  # type: ignore[return-value]

    @property
    def peak_of_values(self) -> int:
        """That of the program compiled last. Raises RuntimeError before the first call."""
        if not self.compiled:
            raise RuntimeError("there is no program yet: the first call with a batch makes it")
        made: Any = self.compiled[-1].executable
        return int(getattr(made, "local", made).peak_of_values)


class ScheduledExecutable:
    """An executable of one rank as a piece, and the lists that run it, one for each kind of inputs. Has the protocol
    ``Executable``. ``types``: a program with the inputs and outputs of the executable's own, which is not looked at
    here, since its passes may be put off. Parts of distributed tensors are this rank's.
    """

    def __init__(self, executable: Executable, types: Program, piece: str) -> None:
        self._executable, self._piece = executable, piece
        self._inputs, self._outputs = list(types.inputs), list(types.outputs)
        self.lists: dict[Shapes, InstructionList] = {}
        self.peak_of_values = 0
        """The most bytes of inputs, outputs and intermediate values of the last list made."""

    @property
    def program(self) -> Program:
        """The program of the piece."""
        return self._executable.program

    def report(self) -> dict[str, Any]:
        """What the compiler says of the piece."""
        return self._executable.report()

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray]) -> list[StridedArray]:
        """Run the list once."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """The function of inputs that runs a list. Errors are those of the piece, with a note of the instruction."""
        run = self._executable.bind(states)
        pieces: dict[tuple[str, int | None], Callable[..., Any]] = {(self._piece, 0): lambda *inputs: run(inputs)}
        results = [Ref(f"result{i}", (0,)) for i in range(len(self._outputs))]

        def call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            values = {Ref(f"input{i}", (0,)): x for i, x in enumerate(inputs)}
            try:
                left: dict[Ref, Any] = run_list(self._list(inputs), pieces, values)
            except InstructionError as error:
                error.cause.add_note(f"in {error.place}")
                raise error.cause from None
            return [left[ref] for ref in results]

        return call

    def _list(self, inputs: Sequence[StridedArray]) -> InstructionList:
        shapes = tuple(x.shape for x in inputs)
        if shapes not in self.lists:
            self.lists[shapes] = self._make_list(inputs)
        return self.lists[shapes]

    def _make_list(self, inputs: Sequence[StridedArray]) -> InstructionList:
        """The list for such inputs. Raises :class:`~argosy_autoparallel.schedule.ScheduleError` for one that cannot
        run."""
        sizes = _sizes(self._inputs, inputs)
        given = [Port(f"input{i}", TensorType(x.shape, x.dtype.name), "microbatch") for i, x in enumerate(inputs)]
        made = [Port(f"result{i}", _type(value, sizes), "microbatch") for i, value in enumerate(self._outputs)]
        signature = Signature(tuple(given), tuple(made), int(self.report().get("arena_bytes", 0)))
        types = {port.ref(0, 0): port.type for port in given}
        one = InstructionList((Run(self._piece),), {(self._piece, 0): signature}, types)
        self.peak_of_values = verify([one]).peaks[0].device
        return one


def _sizes(values: Sequence[Value], inputs: Sequence[StridedArray]) -> dict[str, int]:
    """The numbers of symbolic sizes that are axes of inputs."""
    axes = [pair for v, x in zip(values, inputs, strict=True) for pair in zip(v.shape, x.shape, strict=True)]
    return {str(size): n for size, n in axes if not isinstance(size, int)}


def _type(value: Value, sizes: dict[str, int]) -> TensorType:
    return TensorType([evaluate_dim(n, sizes) for n in value.shape], value.dtype)

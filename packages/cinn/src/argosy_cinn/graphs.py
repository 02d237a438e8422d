"""Programs that a device's own graph compiler takes whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy_cinn.device_call import DeviceCall
from argosy_hwadapt import Buffer, Device
from argosy_phi_ops.eager.vendor_operator import device_arrays
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

__all__ = ["GraphExecutable", "graph_executable"]


def graph_executable(program: Program, device: Device) -> GraphExecutable | None:
    """The executable of a program of primitives, if the device says that it takes it: of known sizes, from its text."""
    if program.symbols():
        return None
    text = str(program)
    if device.call("supports", text):
        return None
    return GraphExecutable(program, device, device.call("compile_graph", text))


@dataclass(slots=True)
class GraphExecutable:
    """``program`` on ``device``, by the ``graph`` that its compiler made."""

    program: Program
    device: Device
    graph: Any
    reason: str = field(default="", init=False)

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Submit one run."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """A callable for repeated execution on the same states."""
        return _GraphCall(self, list(states))

    def report(self) -> dict[str, Any]:
        """Figures: one call, whatever it does."""
        return {"kernels": 0, "kernel_calls": 1, "host_calls": {}, "arena_bytes": 0}

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows."""
        return f"a graph of {self.device}:\n{self.program}"


class _Facts:
    """What a call is checked by."""

    constants: tuple[Any, ...] = ()

    def __init__(self, program: Program) -> None:
        self.name, self.inputs = program.name, len(program.inputs)
        self.states = [state.name for state in program.states]
        self.signature = [(v.shape, v.dtype) for v in program.block.arguments]
        self.outputs = [(v.shape, v.dtype) for v in program.outputs]
        updates = zip(program.states, program.state_updates, strict=True)
        self.written = [i for i, (state, value) in enumerate(updates) if value is not state.argument]


class _GraphCall(DeviceCall):
    """Runs of a graph."""

    def __init__(self, executable: GraphExecutable, states: list[StridedArray]) -> None:
        super().__init__(_Facts(executable.program), executable.device, states)
        self.graph = executable.graph

    @property
    def arena_bytes(self) -> int:
        """None: the device plans its memory."""
        return 0

    def submit(self, arena: Buffer, payloads: list[StridedArray]) -> None:
        """See :class:`DeviceCall`."""
        self.device.call("run_graph", self.graph, device_arrays(payloads))

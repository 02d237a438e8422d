"""Captured runs: a program's launches as one graph of a device that has such, on memory of its own for what comes and
goes. States are updated where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from argosy_hwadapt import Device
from argosy_hwadapt.fork import renew_in_child
from argosy_tensorcore.storage import StridedArray

__all__ = ["CapturedRun", "captures_graphs"]

Payloads = Sequence[StridedArray]


def captures_graphs(device: Device) -> bool:
    """Whether work that is submitted to a device now can be captured: by the plug-in itself, on its own stream, and
    nobody watches what is submitted."""
    watched = device.observer is not None or device.operands is not None
    return not watched and device.current_stream is None and hasattr(device.runtime, "capture_begin")


class CapturedRun:
    """The graph of what ``submit`` submits for ``inputs``, ``states`` and ``outputs`` like these."""

    def __init__(
        self, device: Device, inputs: Payloads, states: Payloads, outputs: Payloads,
        submit: Callable[[list[StridedArray]], None],
    ) -> None:  # fmt: skip
        self._lock = renew_in_child(Lock())
        self.device, self._places = device, [(state.storage.buffer, state.offset) for state in states]
        self.inputs, self.outputs = (
            [StridedArray.empty(p.shape, p.dtype, device) for p in side] for side in (inputs, outputs)
        )
        device.call("capture_begin")
        try:
            submit([*self.inputs, *states, *self.outputs])
        finally:
            self.graph = device.call("capture_end")

    def is_of(self, states: Payloads) -> bool:
        """Whether states lie where they lay."""
        return all(
            state.storage.buffer is buffer and state.offset == offset
            for state, (buffer, offset) in zip(states, self._places, strict=True)
        )

    def run(self, inputs: Payloads, outputs: Payloads) -> None:
        """Replay it for these."""
        with self._lock:  # what is submitted is in order, and the memory is one
            self._copy(self.inputs, inputs)
            self.device.call("capture_replay", self.graph)
            self._copy(outputs, self.outputs)

    def _copy(self, targets: Payloads, sources: Payloads) -> None:
        for to, source in zip(targets, sources, strict=True):
            size = to.dtype.itemsize
            if to.nbytes:
                places = to.offset * size, source.offset * size
                self.device.copy(to.storage.buffer, source.storage.buffer, to.nbytes, *places)

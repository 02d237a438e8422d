"""Captured graphs: what the framework adds to a plug-in's graph capture, its own or the default one.

A graph names memory by handle. The buffers behind those handles, host memory of copies and kernels live as long as the
graph, so that a replay never writes into a block that belongs to somebody else by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from argosy_hwadapt.errors import DeviceError

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

#: Objects by identity: an array has no hash, and a buffer that is used a thousand times is kept once.
Operands = dict[int, object]


class CapturedGraph:
    """A graph of submitted work for one device, as ``capture_end`` returns and ``capture_replay`` takes it.

    ``graph`` is the plug-in's own; ``operands`` is what its work reads, writes or runs, kept alive.
    """

    __slots__ = ("device", "graph", "operands")

    def __init__(self, device: Device, graph: Any, operands: Operands) -> None:
        self.device, self.graph, self.operands = device, graph, operands

    def __repr__(self) -> str:
        return f"CapturedGraph({self.device}, {len(self.operands)} operands)"


def _begin(device: Device, begin: Callable[[], None]) -> None:
    if device.operands is not None or device.observer is not None:
        raise DeviceError(f"{device}: graph capture or profiling is already active; end it first")
    begin()
    device.operands = {}


def _end(device: Device, end: Callable[[], Any]) -> CapturedGraph:
    if device.operands is None:
        raise DeviceError(f"{device}: graph capture was not started")
    operands, device.operands = device.operands, None
    return CapturedGraph(device, end(), operands)


def _replay(device: Device, replay: Callable[[Any], None], graph: CapturedGraph) -> None:
    if not isinstance(graph, CapturedGraph) or graph.device is not device:
        raise DeviceError(f"{device}: capture_replay needs a graph that was captured on {device}, not {graph!r}")
    device.retain(graph)
    replay(graph.graph)


#: Method of the contract -> function of the device, the plug-in's method (or its default) and the method's arguments.
WRAPPERS: Mapping[str, Callable[..., Any]] = {
    "capture_begin": _begin,
    "capture_end": _end,
    "capture_replay": _replay,
}

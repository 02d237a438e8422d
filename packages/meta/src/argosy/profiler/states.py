"""When to record, and the names of what can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

__all__ = ["ProfilerState", "ProfilerTarget", "SortedKeys", "SummaryView", "TracerEventType", "make_scheduler"]


class ProfilerState(Enum):
    """What the profiler does during a step: nothing, warm up, record, or record and hand the trace over at its end."""

    CLOSED = 0
    READY = 1
    RECORD = 2
    RECORD_AND_RETURN = 3


class ProfilerTarget(Enum):
    """Kinds of devices; the CPU is always recorded, and so are devices that are open when a recording begins."""

    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM_DEVICE = 3


class SortedKeys(Enum):
    """Orders of a summary's rows. There are no GPU times here: the GPU keys sort as their CPU counterparts."""

    CPUTotal = 0
    CPUAvg = 1
    CPUMax = 2
    CPUMin = 3
    GPUTotal = 4
    GPUAvg = 5
    GPUMax = 6
    GPUMin = 7


class SummaryView(Enum):
    """Tables of a summary; views that this profiler has nothing for are empty."""

    DeviceView = 0
    OverView = 1
    ModelView = 2
    DistributedView = 3
    KernelView = 4
    OperatorView = 5
    MemoryView = 6
    MemoryManipulationView = 7
    UDFView = 8


class TracerEventType(Enum):
    """Kinds of events."""

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    Kernel = 3
    Memcpy = 4
    Forward = 7
    Backward = 8
    Optimization = 9
    Communication = 10
    PythonOp = 11
    PythonUserDefined = 12
    Program = 13
    Fallback = 14


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """Cycles of ``closed``, ``ready`` and ``record`` steps, ``repeat`` times (0: for ever), after ``skip_first`` steps.

    Raises ValueError unless ``record`` is positive and nothing negative.
    """
    if record < 1 or min(closed, ready, repeat, skip_first) < 0:
        raise ValueError(
            f"make_scheduler() needs record > 0 and no negative number, got closed={closed}, ready={ready}, "
            f"record={record}, repeat={repeat}, skip_first={skip_first}"
        )
    period = closed + ready + record

    def state(step: int) -> ProfilerState:
        if step < skip_first or (repeat and (step - skip_first) // period >= repeat):
            return ProfilerState.CLOSED
        at = (step - skip_first) % period
        if at < closed:
            return ProfilerState.CLOSED
        if at < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD if at < period - 1 else ProfilerState.RECORD_AND_RETURN

    return state

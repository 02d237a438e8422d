"""The argosy device contract: memory, kernels, streams, communicators, worker threads."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_hwadapt.__about__ import __version__
from argosy_hwadapt.contract import ABI, DeviceInfo, DeviceRuntime
from argosy_hwadapt.device import Device, HostDevice
from argosy_hwadapt.errors import (
    AbiMismatch,
    CollectiveMismatch,
    CommunicatorError,
    DeviceError,
    DeviceLost,
    DeviceNotFound,
    DeviceOutOfMemory,
    KernelBuildError,
    LaunchError,
    RankFailure,
    UnsupportedOperation,
)
from argosy_hwadapt.kernel import DeviceArray, Pointer, Scalar
from argosy_hwadapt.memory import Buffer, MemoryStats
from argosy_hwadapt.registry import available, device, device_infos, device_names, why

if TYPE_CHECKING:
    from argosy_hwadapt.communicator import REDUCE_OPS, Communicator
    from argosy_hwadapt.cpu.features import available_memory, cpu_features, physical_cores
    from argosy_hwadapt.cpu.tiles import request_tiles
    from argosy_hwadapt.cpu.workers import WorkerThreads
    from argosy_hwadapt.inproc import run_ranks

__all__ = [
    "ABI",
    "REDUCE_OPS",
    "AbiMismatch",
    "Buffer",
    "CollectiveMismatch",
    "Communicator",
    "CommunicatorError",
    "Device",
    "DeviceArray",
    "DeviceError",
    "DeviceInfo",
    "DeviceLost",
    "DeviceNotFound",
    "DeviceOutOfMemory",
    "DeviceRuntime",
    "HostDevice",
    "KernelBuildError",
    "LaunchError",
    "MemoryStats",
    "Pointer",
    "RankFailure",
    "Scalar",
    "UnsupportedOperation",
    "WorkerThreads",
    "__version__",
    "available",
    "available_memory",
    "cpu_features",
    "device",
    "device_infos",
    "device_names",
    "physical_cores",
    "request_tiles",
    "run_ranks",
    "why",
]

#: Names that most programs never touch, imported when first read.
_LAZY = {
    "REDUCE_OPS": "argosy_hwadapt.communicator",
    "Communicator": "argosy_hwadapt.communicator",
    "WorkerThreads": "argosy_hwadapt.cpu.workers",
    "available_memory": "argosy_hwadapt.cpu.features",
    "cpu_features": "argosy_hwadapt.cpu.features",
    "physical_cores": "argosy_hwadapt.cpu.features",
    "request_tiles": "argosy_hwadapt.cpu.tiles",
    "run_ranks": "argosy_hwadapt.inproc",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'argosy_hwadapt' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value

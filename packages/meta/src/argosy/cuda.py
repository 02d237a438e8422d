"""Questions about CUDA under another framework's names, as Paddle keeps them: there is no CUDA device, and what would
need one says so."""

from __future__ import annotations

from typing import NoReturn

from argosy.device.streams import refusing
from argosy.faces import face

_AS_IN_DEVICE = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "Stream", "StreamContext", "current_stream", "device_count",
    "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_stream_from_external", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "manual_seed", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_device",
    "set_rng_state", "set_stream", "synchronize",
)  # fmt: skip
_TABLE = {
    **{name: f"argosy.device:{name}" for name in _AS_IN_DEVICE},
    "device": "argosy.device:device_guard",
    "manual_seed_all": "argosy.device:manual_seed",
    "stream": "argosy.device:stream_guard",
}

__all__ = [*_TABLE, "check_error", "cudart", "current_device", "is_initialized", "mem_get_info"]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

mem_get_info = refusing("cuda.mem_get_info", "CUDA device")
cudart = refusing("cuda.cudart", "CUDA device")


def current_device() -> int:
    """The number of the device that operators run on: 0, the cpu."""
    return 0


def is_initialized() -> bool:
    """Whether an accelerator is in use: False."""
    return False


def check_error(res: int) -> NoReturn:
    """Raises ValueError: there is no CUDA device whose error ``res`` could be."""
    raise ValueError(f"cuda.check_error({res}): there is no CUDA device: operators run on the cpu only so far")

"""Questions about CUDA under another framework's names, as Paddle keeps them: there is no CUDA device, and what would
need one says so."""

from __future__ import annotations

from typing import NoReturn

from argosy.device.places import set_device
from argosy.device.queries import device_count, device_guard, empty_cache, is_available, is_bf16_supported, synchronize
from argosy.device.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_stream_from_external,
    ipc_collect,
    is_current_stream_capturing,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    refusing,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_stream,
    stream_guard,
)  # fmt: skip
from argosy.device.typed import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    get_rng_state,
    manual_seed,
    set_rng_state,
)  # fmt: skip

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "Stream", "StreamContext", "check_error", "cudart", "current_device",
    "current_stream", "device", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_stream_from_external", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_device",
    "set_rng_state", "set_stream", "stream", "synchronize",
]  # fmt: skip

device = device_guard
stream = stream_guard
manual_seed_all = manual_seed
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

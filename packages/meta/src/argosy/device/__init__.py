"""Devices: which there are, what tensors are made on, and waiting for them."""

import sys
from types import ModuleType
from typing import Any

from argosy.faces import face

_PLACES = (
    "CPUPlace", "get_available_device", "get_device", "is_compiled_with_cinn", "is_compiled_with_cuda",
    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "set_device",
)  # fmt: skip
_FUNCTIONS = (
    "IPUPlace", "XPUPlace", "device_count", "device_guard", "empty_cache", "get_all_custom_device_type",
    "get_all_device_type", "get_available_custom_device", "get_cudnn_version", "is_available", "is_bf16_supported",
    "synchronize",
)  # fmt: skip
_STREAMS = (
    "Event", "Stream", "StreamContext", "current_stream", "get_device_capability", "get_device_name",
    "get_device_properties", "get_stream_from_external", "ipc_collect", "is_current_stream_capturing",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "reset_peak_memory_stats", "set_stream", "stream_guard",
)  # fmt: skip
_TYPED = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "get_rng_state", "manual_seed", "set_rng_state",
)  # fmt: skip
_TABLE: dict[str, str] = {
    "_convert_to_place": "argosy.device.places:place_named",
    **{name: f"argosy.device.places:{name}" for name in _PLACES},
    **{name: f"argosy.device.queries:{name}" for name in _FUNCTIONS},
    **{name: f"argosy.device.streams:{name}" for name in _STREAMS},
    **{name: f"argosy.device.typed:{name}" for name in _TYPED},
    "Device": "argosy.device.description:Device",
    "device": "argosy.device.queries:device_guard",
    **{name: f"argosy.device.{name}" for name in ("cuda", "custom_device", "xpu")},
}

__all__ = [name for name in _TABLE if name[0] != "_"]
__getattr__, __dir__ = face(__name__, _TABLE, globals())


class _Callable(ModuleType):
    """``paddle.device("cpu")`` describes a device, though ``paddle.device`` is a module."""

    def __call__(self, type: Any = None, index: int | None = None) -> Any:
        return self.Device(type, index)


sys.modules[__name__].__class__ = _Callable

"""Devices: which there are, what tensors are made on, and waiting for them."""

from argosy.faces import face

_PLACES = (
    "CPUPlace", "get_available_device", "get_device", "is_compiled_with_cinn", "is_compiled_with_cuda",
    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "set_device",
)  # fmt: skip
_FUNCTIONS = (
    "device_count", "device_guard", "get_all_custom_device_type", "get_all_device_type", "get_available_custom_device",
    "get_cudnn_version", "is_available", "synchronize",
)  # fmt: skip
_TABLE: dict[str, str] = {
    **{name: f"argosy.device.places:{name}" for name in _PLACES},
    **{name: f"argosy.device.queries:{name}" for name in _FUNCTIONS},
    "cuda": "argosy.device.cuda",
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

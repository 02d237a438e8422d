"""What libraries ask of Paddle's inner module ``core``: switches that stand here for good, marks for CUDA's profiler,
what the build can do."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn

from argosy.api import lazy_names, targets
from argosy.device import (
    CPUPlace,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_custom_device,
    is_compiled_with_distribute,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
)
from argosy.framework.other_devices import CUDAPinnedPlace, CUDAPlace
from argosy.framework.readers import frombuffer
from argosy.runtime import Tensor
from argosy_autograd.modes import is_grad_enabled, set_grad_enabled
from argosy_phi_ops.context import context
from argosy_tensorcore import dtype as dtypes
from argosy_tensorcore.dtype import DType as DataType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.place import Place, as_place
from argosy_tensorcore.rng import Generator

__all__ = [
    *targets(__name__),
    "AmpLevel", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DataType", "DenseTensor", "EOFException",
    "Generator", "LoDTensor", "Place", "VarDesc", "default_cpu_generator", "default_cuda_generator",
    "default_custom_device_generator", "default_xpu_generator", "device_memory_stat_current_value",
    "device_memory_stat_peak_value", "eager", "frombuffer", "get_cuda_device_count", "get_custom_device_count",
    "is_compiled_with_cinn", "is_compiled_with_cuda", "is_compiled_with_custom_device",
    "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_nccl", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "nvprof_enable_record_event", "nvprof_nvtx_pop", "nvprof_nvtx_push", "nvprof_start",
    "nvprof_stop", "set_prim_eager_enabled", "size_of_dtype",
]  # fmt: skip


__getattr__, __dir__ = lazy_names(__name__, globals())

LoDTensor = DenseTensor = Tensor
"""What Paddle's tensors hold: here they hold no other tensor."""


class AmpLevel(IntEnum):
    """Levels of mixed precision: O0 none, O1 what is safe, O2 nearly everything, O3 everything, OD what gains most."""

    O0, O1, O2, O3, OD = range(5)


class EOFException(Exception):
    """What a reader of static programs raises at its end; nothing in argosy does."""


class eager:
    """Where Paddle's dynamic mode has its tensor."""

    Tensor: Any = Tensor


class VarDesc:
    """Where Paddle 2 had the types of variables, which libraries compare dtypes with and give where one is wanted."""

    class VarType:
        """Dtypes by their older names, and Paddle's numbers of what is no dtype."""

        BOOL = dtypes.bool_
        UINT8 = dtypes.uint8
        INT8 = dtypes.int8
        INT16 = dtypes.int16
        INT32 = dtypes.int32
        INT64 = dtypes.int64
        FP16 = dtypes.float16
        BF16 = dtypes.bfloat16
        FP32 = dtypes.float32
        FP64 = dtypes.float64
        COMPLEX64 = dtypes.complex64
        COMPLEX128 = dtypes.complex128
        LOD_TENSOR = DENSE_TENSOR = 7
        SELECTED_ROWS = 8
        FEED_MINIBATCH, FETCH_LIST, STEP_SCOPES, RAW = 9, 10, 11, 17
        STRING, STRINGS, VOCAB = 25, 26, 27
        LOD_TENSOR_ARRAY = DENSE_TENSOR_ARRAY = 13


def default_cpu_generator() -> Generator:
    """The random generator of this rank."""
    return context().generator


def _no_generator(kind: str) -> NoReturn:
    raise RuntimeError(f"there is no generator of {kind} devices: all devices draw with default_cpu_generator()")


def default_cuda_generator(index: int = 0) -> NoReturn:
    """Raises RuntimeError, as Paddle's build for the CPU does."""
    _no_generator("CUDA")


def default_xpu_generator(index: int = 0) -> NoReturn:
    """Raises RuntimeError, as Paddle's build for the CPU does."""
    _no_generator("XPU")


def default_custom_device_generator(place: object = None) -> Generator:
    """The random generator of this rank, which all devices draw with. Raises DeviceNotFound."""
    as_place(place).device()
    return context().generator


def device_memory_stat_current_value(stat_type: str, dev_id: int) -> int:
    """0: no memory is taken on a device but the host."""
    return 0


def device_memory_stat_peak_value(stat_type: str, dev_id: int) -> int:
    """0, as :func:`device_memory_stat_current_value`."""
    return 0


def get_custom_device_count(device_type: str) -> int:
    """0: there are no devices of other kinds that operators compute on."""
    return 0


def is_compiled_with_nccl() -> bool:
    """False: collectives go over MPI and shared memory."""
    return False


def size_of_dtype(dtype: Any) -> int:
    """Bytes of one element."""
    return as_dtype(dtype).itemsize


def _has_grad() -> bool:
    """Whether gradients are recorded."""
    return is_grad_enabled()


def _set_has_grad(enabled: bool) -> None:
    """Let gradients be recorded from here on, or not."""
    set_grad_enabled(enabled)


def get_cuda_device_count() -> int:
    """0: operators compute on no CUDA device."""
    return 0


def set_prim_eager_enabled(enabled: bool) -> None:
    """Nothing: gradients of gradients always go through primitives, as Paddle's do where this is switched on."""


def _set_prim_all_enabled(enabled: bool) -> None:
    """Nothing, as :func:`set_prim_eager_enabled`: programs are always made of primitives."""


def _set_prim_forward_enabled(enabled: bool) -> None:
    """Nothing, as :func:`set_prim_eager_enabled`."""


def _set_prim_backward_enabled(enabled: bool) -> None:
    """Nothing, as :func:`set_prim_eager_enabled`."""


def _set_prim_backward_blacklist(*names: str) -> None:
    """Nothing, as :func:`set_prim_eager_enabled`: derivatives of every operator go through its primitives."""


def _set_prim_forward_blacklist(*names: str) -> None:
    """Nothing, as :func:`_set_prim_backward_blacklist`."""


def nvprof_start() -> None:
    """Nothing: marks for CUDA's profiler have no meaning without CUDA; see :mod:`argosy.profiler`."""


def nvprof_stop() -> None:
    """Nothing, as :func:`nvprof_start`."""


def nvprof_enable_record_event() -> None:
    """Nothing, as :func:`nvprof_start`."""


def nvprof_nvtx_push(name: str) -> None:
    """Nothing, as :func:`nvprof_start`."""


def nvprof_nvtx_pop() -> None:
    """Nothing, as :func:`nvprof_start`."""

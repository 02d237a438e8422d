"""What libraries ask of Paddle's inner module ``core``: switches that stand here for good, marks for CUDA's profiler,
what the build can do."""

from __future__ import annotations

from typing import Any

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
from argosy.framework.reading import frombuffer
from argosy.runtime import Tensor
from argosy_phi_ops.context import context
from argosy_tensorcore import dtype as dtypes
from argosy_tensorcore.dtype import DType as DataType

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DataType", "EOFException", "VarDesc", "default_cpu_generator", "eager",
    "frombuffer",
    "get_cuda_device_count", "is_compiled_with_cinn", "is_compiled_with_cuda", "is_compiled_with_custom_device",
    "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm", "is_compiled_with_xpu",
    "nvprof_enable_record_event", "nvprof_nvtx_pop", "nvprof_nvtx_push", "nvprof_start", "nvprof_stop",
    "set_prim_eager_enabled",
]  # fmt: skip


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
        LOD_TENSOR_ARRAY = DENSE_TENSOR_ARRAY = 13


def default_cpu_generator() -> Any:
    """The random generator of this rank."""
    return context().generator


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

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

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "EOFException", "default_cpu_generator", "eager", "frombuffer",
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

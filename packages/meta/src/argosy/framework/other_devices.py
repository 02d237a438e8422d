"""What scripts for builds with other devices ask for: places, states of generators, kernels of one kind of GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from argosy.argument_checks import validate_call
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "CUDA_HOME", "BuildExtension", "CUDAPinnedPlace", "CUDAPlace", "XPUPinnedPlace", "disable_signal_handler",
    "fp8_fp8_half_gemm_fused", "get_cuda_rng_state", "set_cuda_rng_state",
]  # fmt: skip


CUDA_HOME = None
"""Where CUDA's compiler is: nowhere, as nothing is compiled with it."""


class BuildExtension:
    """Raises ``NotImplementedError``: it compiles against Paddle's C++ headers."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            "utils.cpp_extension.BuildExtension is not implemented: it compiles against Paddle's C++ headers; "
            "argosy.library.custom_op takes a C symbol or a Python body"
        )


def get_cuda_rng_state() -> list[Tensor]:
    """The states of the generators of CUDA devices: none."""
    return []


@validate_call
def set_cuda_rng_state(state_list: Sequence[Tensor]) -> None:
    """Put back what :func:`get_cuda_rng_state` gave. Raises ``ValueError`` for states of devices that are not there."""
    if len(state_list):
        raise ValueError(f"set_cuda_rng_state: {len(state_list)} states for no CUDA device")


def disable_signal_handler() -> None:
    """Leave signals to the program: argosy handles none."""


def CUDAPlace(id: int = 0) -> NoReturn:
    """Raises ``ValueError`` as Paddle's build for the CPU does: there is no CUDA device."""
    raise ValueError(f"CUDAPlace({id}): there is no CUDA device that operators compute on; use CPUPlace()")


def CUDAPinnedPlace() -> NoReturn:
    """Raises ``RuntimeError`` as Paddle's build for the CPU does."""
    raise RuntimeError("CUDAPinnedPlace(): pinned memory needs a CUDA device")


def XPUPinnedPlace() -> NoReturn:
    """Raises ``RuntimeError`` as Paddle's build for the CPU does."""
    raise RuntimeError("XPUPinnedPlace(): pinned memory needs an XPU device")


def fp8_fp8_half_gemm_fused(
    x: Tensor,
    y: Tensor,
    transpose_x: bool = False,
    transpose_y: bool = False,
    bias: Tensor | None = None,
    scale: float = 1.0,
    output_dtype: str = "float16",
    act: str = "identity",
    name: str | None = None,
) -> NoReturn:
    """Raises ``NotImplementedError``: a kernel for one kind of GPU; cast and use ``matmul``."""
    raise NotImplementedError("fp8_fp8_half_gemm_fused needs a CUDA device with float8 matrix units; use matmul")

"""Names of the framework at large: flags, generators' states on devices, places of other builds, readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "CUDAPinnedPlace", "CUDAPlace", "MmapStorage", "XPUPinnedPlace", "batch", "check_shape", "disable_signal_handler",
    "fp8_fp8_half_gemm_fused", "get_cuda_rng_state", "get_flags", "set_cuda_rng_state", "set_flags",
]  # fmt: skip

_FLAGS: dict[str, Any] = {
    "FLAGS_use_stride_kernel": True,
    "FLAGS_enable_pir_api": True,
    "FLAGS_check_nan_inf": False,
    "FLAGS_check_nan_inf_level": 0,
    "FLAGS_cudnn_deterministic": True,
    "FLAGS_embedding_deterministic": 1,
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_retain_grad_for_all_tensor": False,
    "FLAGS_benchmark": False,
}
"""Paddle's switches as argosy stands: results are deterministic and eager views share memory, always."""
_CHECKS = frozenset({"FLAGS_check_nan_inf", "FLAGS_check_nan_inf_level"})
_FREE = _CHECKS | {"FLAGS_allocator_strategy", "FLAGS_eager_delete_tensor_gb"}


def _known(name: str) -> str:
    full = name if name.startswith("FLAGS_") else "FLAGS_" + name
    if full not in _FLAGS:
        raise ValueError(f"flag {name} is unknown; there are {', '.join(sorted(_FLAGS))}")
    return full


def get_flags(flags: str | Sequence[str]) -> dict[str, Any]:
    """The values of one flag or of several. Raises ``ValueError`` for an unknown one."""
    if not isinstance(flags, (str, list, tuple)):
        raise TypeError(f"get_flags: flags should be a name or a list of names, got {type(flags).__name__}")
    return {name: _FLAGS[_known(name)] for name in ([flags] if isinstance(flags, str) else flags)}


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name. Raises ``NotImplementedError`` for a value that argosy cannot honour.

    ``FLAGS_check_nan_inf`` has the results of eager operators looked at: NaN or infinity raises ``RuntimeError``, or is
    printed with ``FLAGS_check_nan_inf_level`` 1 and more. Gradients are left to ``autograd.detect_anomaly``.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags: flags should map names to values, got {type(flags).__name__}")
    for name, value in flags.items():
        full = _known(name)
        if full not in _FREE and value != _FLAGS[full]:
            raise NotImplementedError(f"set_flags: {full} is {_FLAGS[full]!r}; {value!r} is not implemented")
        _FLAGS[full] = bool(value) if full == "FLAGS_check_nan_inf" else value
    if _CHECKS.intersection(map(_known, flags)):
        _check_numbers()


def _check_numbers() -> None:
    """Switch the checker of results as the flags say."""
    debugging = import_module("argosy.amp.debugging")
    modes = debugging.DebugMode
    mode = modes.CHECK_NAN_INF if _FLAGS["FLAGS_check_nan_inf_level"] else modes.CHECK_NAN_INF_AND_ABORT
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(_FLAGS["FLAGS_check_nan_inf"], mode))


def get_cuda_rng_state() -> list[Tensor]:
    """The states of the generators of CUDA devices: none."""
    return []


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


def batch(reader: Callable[[], Iterable[Any]], batch_size: int, drop_last: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of lists of ``batch_size`` samples of ``reader``; the last, shorter one can be dropped."""
    if batch_size <= 0:
        raise ValueError(f"batch: batch_size should be positive, got {batch_size}")

    def batches() -> Iterator[Any]:
        held: list[Any] = []
        for sample in reader():
            held.append(sample)
            if len(held) == batch_size:
                yield held
                held = []
        if held and not drop_last:
            yield held

    return batches


def check_shape(
    shape: Any,
    op_name: str,
    expected_shape_type: tuple[type, ...] = (list, tuple, Tensor),
    expected_element_type: tuple[type, ...] = (int, Tensor),
    expected_tensor_dtype: tuple[str, ...] = ("int32", "int64"),
) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``shape`` can be one: of those types, with no negative size."""
    if not isinstance(shape, Iterable) or not isinstance(shape, expected_shape_type):
        raise TypeError(f"{op_name}: shape should be a list or tuple, got {type(shape).__name__}")
    if isinstance(shape, Tensor):
        if shape.dtype.name not in expected_tensor_dtype:
            raise TypeError(f"{op_name}: a shape's dtype is one of {expected_tensor_dtype}, got {shape.dtype.name}")
        return
    sizes = list(shape)
    for item in sizes:
        if not isinstance(item, expected_element_type):
            raise TypeError(f"{op_name}: shape {shape} should hold integers, got {type(item).__name__}")
        if isinstance(item, int) and item < 0:
            raise ValueError(f"{op_name}: shape {list(sizes)} holds a negative size")


class MmapStorage:
    """A file mapped into memory, of which parts can be read as tensors without a copy."""

    def __init__(self, filename: str, nbytes: int) -> None:
        self._bytes = np.memmap(filename, np.uint8, "r+", shape=(nbytes,))

    def get_slice(self, dtype: Any = "uint8", start: int = 0, stop: int = -1, step: int = 1) -> Tensor:
        """The elements ``start`` to ``stop`` (-1: the end) of the file read as ``dtype``; they share its memory."""
        elements = np.asarray(self._bytes).view(as_dtype(dtype).numpy)
        return Tensor._wrap(Strided.from_array(elements[start : len(elements) if stop == -1 else stop : step]))


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


_ELSEWHERE = (
    "CPUPlace", "ParamAttr", "disable_static", "dtype", "enable_static", "get_default_dtype", "grad", "in_dynamic_mode",
    "load", "no_grad", "random", "save", "seed", "set_default_dtype",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """What ``paddle.framework`` shows of the rest of the framework."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("argosy.random") if name == "random" else getattr(import_module("argosy"), name)

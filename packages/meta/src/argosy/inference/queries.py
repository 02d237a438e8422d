"""Questions about the library, and what of Paddle Inference belongs to engines that are not here."""

from __future__ import annotations

from typing import Any, NoReturn

from argosy import version
from argosy.inference.kinds import DataType
from argosy_tensorcore.dtype import as_dtype

__all__ = [
    "XpuConfig",
    "convert_to_mixed_precision",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]


def get_version() -> str:
    """The version of Paddle whose interface this is, and argosy's own."""
    return f"version: {version.full_version}\ncommit: {version.commit}\n"


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """How many bytes an element takes."""
    return as_dtype(dtype.name.lower()).numpy.itemsize


def get_trt_compile_version() -> tuple[int, int, int]:
    """``(0, 0, 0)``: there is no TensorRT, as in Paddle's own builds without it."""
    return (0, 0, 0)


def get_trt_runtime_version() -> tuple[int, int, int]:
    """``(0, 0, 0)``, as :func:`get_trt_compile_version`."""
    return (0, 0, 0)


def convert_to_mixed_precision(
    model_file: str,
    params_file: str,
    mixed_model_file: str,
    mixed_params_file: str,
    mixed_precision: Any,
    backend: Any,
    keep_io_types: bool = True,
    black_list: Any = frozenset(),
    **kwargs: Any,
) -> NoReturn:
    """Raises NotImplementedError: a program is exported in the precision that it shall have."""
    raise NotImplementedError(
        "inference.convert_to_mixed_precision is not implemented: export the model under amp.auto_cast instead"
    )


class XpuConfig:
    """Settings of a chip that argosy does not run on. Raises NotImplementedError."""

    def __init__(self) -> None:
        raise NotImplementedError("inference.XpuConfig: programs run on the cpu; there is no XPU")

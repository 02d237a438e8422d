"""What authors of layers for older versions import: checks of arguments, the mode, dtypes as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.modes import in_dynamic_mode as in_dygraph_mode
from argosy.runtime import Tensor as Variable
from argosy.static import default_main_program, device_guard
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.dtype import as_dtype as convert_np_dtype_to_dtype_

__all__ = [
    "Variable", "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype", "convert_np_dtype_to_dtype_",
    "default_main_program", "device_guard", "in_dygraph_mode",
]  # fmt: skip


def convert_dtype(dtype: Any) -> str:
    """The name of a dtype; bfloat16 is ``"uint16"`` as numpy, which lacks it, sees it in Paddle.

    Raises TypeError for what is no dtype.
    """
    name = as_dtype(dtype).name
    return "uint16" if name == "bfloat16" else name


def check_type(
    input: Any, input_name: str, expected_type: type | tuple[type, ...], op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless ``input`` is of one of these types."""
    if not isinstance(input, expected_type):
        kinds = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        message = f"{op_name}(): argument {input_name!r} must be {wanted}, got {type(input).__name__}"
        raise TypeError(f"{message}. {extra_message}".rstrip())


def check_dtype(
    input_dtype: Any, input_name: str, expected_dtype: str | Sequence[str], op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless the dtype is one of these."""
    wanted = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    if not {convert_dtype(input_dtype), as_dtype(input_dtype).name} & set(wanted):
        came = as_dtype(input_dtype).name
        message = f"{op_name}(): argument {input_name!r} must have dtype {' or '.join(wanted)}, got {came}"
        raise TypeError(f"{message}. {extra_message}".rstrip())


def check_variable_and_dtype(
    input: Any, input_name: str, expected_dtype: str | Sequence[str], op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless ``input`` is a tensor of one of these dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)

"""What authors of layers for older versions import: checks of arguments, the mode, dtypes as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.framework.creation import make_parameter
from argosy.framework.default_dtype import get_default_dtype
from argosy.framework.modes import in_dynamic_mode as in_dygraph_mode
from argosy.framework.param_attr import as_param_attr
from argosy.runtime import Tensor as Variable
from argosy_tensorcore import naming
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.dtype import as_dtype as convert_np_dtype_to_dtype_

__all__ = [
    "LayerHelper", "Variable", "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype",
    "convert_np_dtype_to_dtype_", "in_dygraph_mode",
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


class LayerHelper:
    """What functions of older libraries make parameters with. They append operations by name only to programs of
    Paddle's old kind, which do not exist here: ``append_op`` raises NotImplementedError.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.layer_type, self.kwargs = layer_type, kwargs
        self.name = kwargs.get("name") or naming.generate(layer_type)

    @property
    def param_attr(self) -> Any:
        """The attributes that the caller gave for weights."""
        return as_param_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """The attributes that the caller gave for biases."""
        return as_param_attr(self.kwargs.get("bias_attr"))

    @staticmethod
    def get_default_dtype() -> str:
        """The name of the type that parameters have unless another is asked for."""
        return get_default_dtype()

    def input_dtype(self, input_param_name: str = "input") -> Any:
        """The dtype of the caller's argument of that name, or of the first of several."""
        given = self.kwargs[input_param_name]
        return (given[0] if isinstance(given, list | tuple) else given).dtype

    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Callable[..., Any] | None = None,
    ) -> Variable | None:
        """A parameter named after the function; None when ``attr`` is False."""
        chosen = as_param_attr(attr)
        if chosen is None:
            return None
        return make_parameter(self.name, shape, chosen, dtype, is_bias, default_initializer)

    def append_op(self, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: there are no programs that operations are appended to by name."""
        wanted = kwargs.get("type") or (args[0] if args else self.layer_type)
        raise NotImplementedError(f"LayerHelper.append_op({wanted!r}): call the function of the operator instead")

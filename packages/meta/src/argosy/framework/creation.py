"""Tensors from data, and parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.framework.param_attr import ParamAttr, as_param_attr
from argosy.static.session import note_parameter
from argosy_autograd.modes import no_grad
from argosy_phi_ops.context import AMBIENT
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.creation import creation_device
from argosy_phi_ops.eager.dispatch import deliver, suspend_layers
from argosy_tensorcore import naming
from argosy_tensorcore.dtype import as_dtype, default_dtype
from argosy_tensorcore.place import as_place
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.uninitialized_payload import UninitializedPayload

__all__ = ["as_tensor", "assign", "create_parameter", "from_numpy", "is_tensor", "make_parameter", "to_tensor"]


@parameter_aliases(device="place")
def to_tensor(data: Any, dtype: object = None, place: object = None, stop_gradient: bool = True) -> Tensor:
    """A tensor that copies ``data``: an array (whose dtype it keeps), a number, nested lists, or a tensor.

    Python floats take the default dtype, integers int64. Raises ValueError for ragged nests.
    """
    made = Tensor(_convert_data("to_tensor", data), dtype, place, stop_gradient)
    return _on_expected_place(made) if place is None and AMBIENT.word else made


def as_tensor(
    data: Any, dtype: object = None, device: object = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """``data`` as a tensor, as :func:`to_tensor`; with ``pin_memory`` in host memory from which the current device
    copies fast. Raises NotImplementedError for that where the host is the current device."""
    if not pin_memory:
        return to_tensor(_convert_data("as_tensor", data), dtype, device, not requires_grad)
    made = Tensor(_convert_data("as_tensor", data), dtype).pin_memory()
    made.stop_gradient = not requires_grad
    return made


def _on_expected_place(tensor: Tensor) -> Tensor:
    """A tensor just made, where new tensors are made."""
    device = creation_device()
    if device is not None:
        tensor.payload = StridedArray.from_array(tensor.payload.to_host(), device)
    return tensor


def _convert_data(function: str, data: Any) -> Any:
    """``data``, which is something (``Tensor(None)`` is the empty tensor)."""
    if data is None:
        raise TypeError(f"{function}(): argument 'data' should be numbers, an array or a tensor, got None")
    return data


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of ``ndarray``."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy(): argument 'ndarray' must be a numpy.ndarray, got {ndarray!r:.80}")
    return Tensor._wrap(StridedArray.from_array(ndarray))


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """A copy of ``x``: a tensor, a number, an array or nested lists; given to ``output``, with shape and dtype,
    if there is one. A parameter takes what has no history, and stays a parameter.
    """
    copy = get_operator("assign")(x if type(x) is Tensor else to_tensor(np.asarray(x)))
    if output is None:
        return copy  # type: ignore[no-any-return]
    if copy.stop_gradient and output.is_leaf:
        with no_grad():
            return deliver(get_operator("assign"), copy, output)  # type: ignore[no-any-return]
    return deliver(get_operator("assign"), copy, output)  # type: ignore[no-any-return]


@parameter_aliases(obj="x")
def is_tensor(x: object) -> bool:
    """Whether ``x`` is a tensor."""
    return type(x) is Tensor


@validate_call
def create_parameter(
    shape: Sequence[int],
    dtype: object,
    name: str | None = None,
    attr: object = None,
    is_bias: bool = False,
    default_initializer: Callable[..., Any] | None = None,
) -> Tensor:
    """A trainable tensor outside any layer; by default XavierUniform, for a bias zeros."""
    chosen = as_param_attr(attr)
    if chosen is None:
        raise ValueError("create_parameter() makes a parameter, but attr is False, which asks for none")
    if name is not None and chosen.name is None:
        chosen = _with_name(chosen, name)
    return make_parameter(naming.generate("create_parameter"), shape, chosen, dtype, is_bias, default_initializer)


def _with_name(attr: ParamAttr, name: str) -> ParamAttr:
    copy = ParamAttr()
    copy.__dict__.update(attr.__dict__, name=name)
    return copy


def make_parameter(
    owner: str,
    shape: Sequence[int],
    attr: ParamAttr,
    dtype: object = None,
    is_bias: bool = False,
    default_initializer: Callable[..., Any] | None = None,
    device: object = None,
) -> Tensor:
    """The parameter ``<owner>.w_0`` (``b_0`` for a bias) that ``attr`` describes, initialised; it lies on ``device``,
    by default where new tensors are made.

    It is made eagerly even within a capture, where it becomes a state. Raises ValueError for negative sizes.
    """
    from argosy.nn.initializer import Initializer, default_for
    from argosy.nn.lazy import is_lazy

    sizes = _checked_shape(shape)
    element = as_dtype(dtype) if dtype is not None else default_dtype()
    name = attr.name or naming.generate(f"{owner}.{'b' if is_bias else 'w'}")
    initializer = attr.initializer or default_for(is_bias, default_initializer)
    chosen = creation_device() if device is None else as_place(device).device()
    with suspend_layers():
        later = is_lazy() and type(initializer).__call__ is Initializer.__call__
        empty = UninitializedPayload(sizes, element) if later else StridedArray.empty(sizes, element, chosen)
        parameter = Tensor._wrap(empty, not attr.trainable)
        parameter.name, parameter.persistable, parameter.is_parameter = name, True, True
        initializer(parameter)
    note_parameter(parameter, initializer)
    parameter.__dict__.update(
        optimize_attr={"learning_rate": attr.learning_rate},
        regularizer=attr.regularizer,
        need_clip=attr.need_clip,
        is_distributed=False,
    )
    return parameter


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(n) for n in shape)
    except (TypeError, ValueError) as error:
        raise TypeError(f"argument 'shape' of a parameter must be a sequence of integers, got {shape!r:.60}") from error
    if any(n < 0 for n in sizes):
        raise ValueError(f"the shape of a parameter cannot hold negative sizes: {list(sizes)}")
    return sizes

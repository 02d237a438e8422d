"""Tensors to Python numbers and ndarrays and back: the work behind Tensor's data methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_tensorcore.dtype import DType, as_dtype, default_dtype
from argosy_tensorcore.place import Place
from argosy_tensorcore.storage import Array, StridedArray
from argosy_tensorcore.uninitialized_payload import UninitializedPayload, give_memory

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor

_USERS_TYPES = 256
"""Where numpy's numbers of types that other packages registered begin (``NPY_USERDEF``)."""
_PATTERN = {1: np.int8, 2: np.uint16}  # as Paddle gives float8 and bfloat16


class DataError(ValueError, AssertionError):
    """Data of another shape or dtype than asked for (an AssertionError, too, where Paddle raises one)."""


class NotScalarError(DataError):
    """Not exactly one element where a Python number was asked for."""


def host_array(tensor: Tensor, purpose: str) -> Array:
    """The data on the host, zero-copy where the host sees it; purpose ("bool()", "numpy()") is for the tracer
    and errors.

    A traced tensor has no data yet: its payload's ``concretize(purpose)`` may produce it (a graph break);
    without one this raises TypeError.
    """
    payload = tensor.payload
    if not payload.is_traced:
        return payload.to_host()  # type: ignore[no-any-return]
    concretize = getattr(payload, "concretize", None)
    if concretize is None:
        raise TypeError(
            f"{purpose} needs the value of a tensor of shape {list(payload.shape)} and dtype "
            f"{payload.dtype.name} that is being traced and has no value yet. Keep the computation in "
            "tensors (where, cond, while_loop), or compute this value outside the traced function."
        )
    return np.asarray(concretize(purpose))


def is_elsewhere(tensor: Tensor) -> bool:
    """Whether other processes hold the data and this one has none of it (a payload's ``is_held`` says so)."""
    payload = tensor.payload
    return type(payload) is not StridedArray and not getattr(payload, "is_held", True)


def shown_array(tensor: Tensor, purpose: str) -> Array:
    """As :func:`host_array`; no elements (its shape and a last axis of 0) when only other processes hold it."""
    payload = tensor.payload
    if type(payload) is StridedArray:
        return payload.to_host()
    if is_elsewhere(tensor):
        return np.empty((*payload.shape, 0), payload.dtype.numpy)
    return host_array(tensor, purpose)


def bit_pattern(a: Array) -> Array:
    """a itself, or for types that numpy lacks (bfloat16, float8) its bits as int8 or uint16."""
    # By number: a dtype that came through a pickle is a copy, which no longer calls itself built in.
    return a if a.dtype.num < _USERS_TYPES else a.view(_PATTERN[a.itemsize])


def as_ndarray(tensor: Tensor, dtype: Any, copy: bool | None) -> Array:
    """What ``np.asarray(tensor)`` gives: the data, shared unless dtype or copy ask otherwise."""
    a = bit_pattern(shown_array(tensor, "conversion to numpy"))
    wanted = a.dtype if dtype is None else np.dtype(dtype)
    if copy is False and wanted != a.dtype:
        raise ValueError(f"converting {a.dtype} to {wanted} needs a copy, which copy=False forbids")
    return a.astype(wanted, copy=bool(copy))


def scalar(tensor: Tensor, purpose: str) -> Any:
    """The one element as a numpy or Python number. Raises NotScalarError when there is not exactly one."""
    a = host_array(tensor, purpose)
    if a.size != 1:
        raise NotScalarError(f"{purpose} needs a tensor of exactly one element; this one has shape {list(a.shape)}")
    return a.item()


def item(tensor: Tensor, index: tuple[int, ...]) -> Any:
    """The one element, or the element at a flat or full index, as a Python number; None when only others hold it."""
    payload = tensor.payload
    if type(payload) is StridedArray:
        a = payload.to_host()
    elif is_elsewhere(tensor):
        return None
    else:
        a = host_array(tensor, "item()")
    if not index:
        if a.size != 1:
            raise NotScalarError(f"item() without an index needs one element; this tensor has shape {list(a.shape)}")
        return a.item()
    if len(index) not in (1, a.ndim):
        raise ValueError(f"item() takes a flat index or {a.ndim} indices for shape {list(a.shape)}, not {len(index)}")
    try:
        return a.item(*index)
    except IndexError as error:
        raise IndexError(
            f"item(): index {list(index)} is out of range for a tensor of shape {list(tensor.shape)}"
        ) from error
    except TypeError as error:
        raise TypeError(f"item(): arguments must be integers that count elements, got {index}") from error


def payload_of(data: Any, dtype: object, place: Place, zero_copy: bool = False) -> StridedArray:
    """A payload of its own with data's values: arrays keep their dtype, Python floats take the default. With
    ``zero_copy`` it has the memory of an array that is in host memory, of that dtype and can be written to."""
    wanted = None if dtype is None else as_dtype(dtype)
    if zero_copy and isinstance(data, np.ndarray) and data.flags.writeable:
        shares = place.is_cpu_place() and as_dtype(data.dtype).numpy == data.dtype
        a = data if shares and wanted in (None, as_dtype(data.dtype)) else new_array(data, wanted)
    else:
        a = new_array(data, wanted)
    return StridedArray.from_array(a, None if place.is_cpu_place() else place.device())


def new_array(data: Any, dtype: DType | None) -> Array:
    """A fresh ndarray of data (tensor, array, number, nested lists) in the dtype Paddle's to_tensor picks."""
    held = getattr(data, "payload", None)
    if isinstance(data, (str, bytes)):
        raise TypeError(
            f"cannot make a tensor of {data!r}: argument 'data' should be a number, nested lists, an array or a tensor"
        )
    if held is not None:
        source = host_array(data, "to_tensor")
        return np.array(source, source.dtype if dtype is None else dtype.numpy)
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data, (dtype or as_dtype(data.dtype)).numpy)
    try:
        a = np.array(data)
    except ValueError as error:
        raise ValueError(
            f"cannot make a tensor of {data!r:.80}: nested sequences must be rectangular and hold numbers ({error})"
        ) from error
    if a.dtype == object or a.dtype.kind in "USV":
        raise ValueError(f"cannot make a tensor of {data!r}: nested sequences must be rectangular and hold numbers")
    if dtype is None and (held := _tensor_dtypes(data)):
        return np.array(a, np.result_type(*held))
    return np.array(a, (dtype or _inferred_dtype(a.dtype)).numpy)


def _tensor_dtypes(data: Any) -> set[np.dtype[Any]]:
    """Those of the tensors in nested lists, which keep theirs."""
    if not isinstance(data, (list, tuple)):
        held = getattr(data, "payload", None)
        return set() if held is None else {held.dtype.numpy}
    if set(map(type, data)) <= _NUMBERS:
        return set()
    return set().union(*map(_tensor_dtypes, data))


_NUMBERS = {bool, int, float, complex}


def _inferred_dtype(dtype: np.dtype[Any]) -> DType:
    """The dtype of Python numbers that numpy read as dtype."""
    default = default_dtype()
    if dtype.kind == "f":
        return default
    if dtype.kind == "c":
        return as_dtype("complex128" if default.name == "float64" else "complex64")
    return as_dtype(dtype)


def write(tensor: Tensor, value: Any, operator: str, cast: bool) -> None:
    """Overwrite tensor's data in place with value's, of equal shape (and, unless cast, equal dtype)."""
    traced = tensor.payload.is_traced or getattr(getattr(value, "payload", None), "is_traced", False)
    if traced:
        tensor[...] = value  # an operator: the tracer turns it into a new version
        return
    source = host_array(value, operator) if hasattr(value, "payload") else np.asarray(value)
    target: StridedArray = tensor.payload
    if source.shape != target.shape:
        shapes = list(target.shape), list(source.shape)
        raise DataError(f"{operator}: argument 'value' should have the tensor's shape {shapes[0]}, got {shapes[1]}")
    if not cast and as_dtype(source.dtype) is not target.dtype:
        got = as_dtype(source.dtype).name
        raise DataError(f"{operator}: argument 'value' should be {target.dtype.name} as the tensor, got {got}")
    give_memory(tensor)
    tensor.payload.fill_from(source)
    tensor.payload.bump_version()


def deep_copy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with data and attributes of its own: a leaf, also of a tensor that an operator has made, with no gradient
    yet, as in Paddle."""
    from copy import deepcopy

    copy = shallow_copy(tensor)
    copy._node, copy._slot = None, 0
    memo[id(tensor)] = copy
    copy.payload = _duplicate(tensor)
    copy._grad = None
    copy.__dict__.update(deepcopy(tensor.__dict__, memo))
    return copy


def shallow_copy(tensor: Tensor) -> Tensor:
    """Another tensor of the same payload, graph position and attributes, under a new name."""
    from argosy_tensorcore.naming import generate

    if type(tensor.payload) is not UninitializedPayload:
        _ = getattr(tensor.payload, "storage", None)  # so that both count in-place writes together
    copy = type(tensor)._wrap(tensor.payload, tensor.stop_gradient)
    copy._node, copy._slot, copy._grad = tensor._node, tensor._slot, tensor._grad
    copy.persistable, copy.is_parameter = tensor.persistable, tensor.is_parameter
    copy._name = generate(tensor.name + "_deepcopy")
    copy.__dict__.update(tensor.__dict__)
    return copy


def _duplicate(tensor: Tensor) -> Any:
    """A payload with data of its own; a payload that lies otherwise than in one piece of memory has its own way."""
    duplicate = getattr(tensor.payload, "duplicate", None)
    if duplicate is not None:
        return duplicate()
    return StridedArray.from_array(host_array(tensor, "deepcopy").copy(), _device_of(tensor))


def _device_of(tensor: Tensor) -> Any:
    return None if tensor.place.is_cpu_place() else tensor.payload.device


def pickle_parts(tensor: Tensor) -> tuple[Array, str, str, tuple[bool, bool, bool]]:
    """How pickle sees a tensor: bits, dtype name, name and flags, nothing that names code."""
    if tensor._node is not None:
        raise RuntimeError(f"only leaf tensors can be pickled; {tensor.name} is the result of an operator: detach() it")
    bits = np.ascontiguousarray(bit_pattern(host_array(tensor, "pickle"))).reshape(tensor.payload.shape)
    return bits, tensor.dtype.name, tensor.name, (tensor.stop_gradient, tensor.persistable, tensor.is_parameter)


def payload_of_bits(bits: Array, dtype: str) -> StridedArray:
    """The payload that a pickle has as bits, which are checked, since a pickle is untrusted."""
    if not isinstance(bits, np.ndarray) or bits.dtype.kind not in "biufc" or bits.itemsize != as_dtype(dtype).itemsize:
        raise ValueError(f"corrupted pickle of a tensor: no array of {dtype} elements")
    return StridedArray.from_array(np.array(bits).view(as_dtype(dtype).numpy))

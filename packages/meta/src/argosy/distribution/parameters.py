"""Parameters of distributions: numbers, lists, arrays and tensors as tensors of one shape and one floating dtype."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.dtype import DType, default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["as_value", "broadcast", "event_sum", "is_known_false", "parameters", "sizes"]

_REAL_OF = {"complex64": "float32", "complex128": "float64"}


def parameters(owner: str, complex_first: bool = False, **given: Any) -> list[Any]:
    """The parameters of the distribution ``owner``, by name, broadcast against each other.

    Their dtype is that of the first floating tensor or array among them, else the default dtype. With
    ``complex_first`` the first may be complex; the others then are real numbers of its width. Raises ``TypeError`` for
    what is no number, sequence of numbers, array or tensor, ``ValueError`` for shapes that do not fit each other.
    """
    values = {name: _as_array(owner, name, value) for name, value in given.items()}
    dtype = _common_dtype(list(values.values()))
    made = []
    for index, (name, value) in enumerate(values.items()):
        is_complex = _kind(value) == "c"
        if is_complex and not (complex_first and index == 0):
            raise TypeError(f"{owner}: {name} should be real, got {value.dtype}")
        made.append(_as_tensor(value, _complex_of(dtype) if is_complex else dtype))
    return broadcast(owner, *made)


def _as_array(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        array = value
    elif isinstance(value, (bool, str, bytes, dict)) or value is None:
        raise TypeError(f"{owner}: {name} should be a number, a sequence, an array or a Tensor, got {value!r:.80}")
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise TypeError(f"{owner}: {name} is no array of numbers: {error}") from error
        if array.dtype.kind in "fc":  # Python's numbers have no width of their own
            default = default_dtype().name
            array = array.astype(_complex_of(default) if array.dtype.kind == "c" else default)
    if _kind(array) not in "fiuc":
        raise TypeError(f"{owner}: {name} should hold numbers, got {array.dtype}")
    return array


def _kind(value: Any) -> str:
    return value.dtype.kind


def _name(value: Any) -> str:
    return value.dtype.name


def _complex_of(dtype: str) -> str:
    return "complex128" if dtype == "float64" else "complex64"


def _common_dtype(values: Sequence[Any]) -> str:
    for kinds in ((Tensor,), (np.ndarray,)):
        for value in values:
            if isinstance(value, kinds) and _kind(value) in "fc" and np.ndim(value) + isinstance(value, Tensor):
                return _REAL_OF.get(_name(value), _name(value))
    return next((_REAL_OF.get(_name(v), _name(v)) for v in values if _kind(v) in "fc"), default_dtype().name)


def _as_tensor(value: Any, dtype: str) -> Tensor:
    if not isinstance(value, Tensor):
        return Tensor(np.asarray(value), dtype)
    return value if value.dtype.name == dtype else get_operator("cast")(value, dtype)


def broadcast(owner: str, *tensors: Tensor) -> list[Any]:
    """The tensors with one shape; those that have it already are given back as they are."""
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) == 1:
        return list(tensors)
    try:
        return list(get_operator("broadcast_tensors")(list(tensors)))
    except ValueError as error:
        raise ValueError(f"{owner}: shapes {sorted(map(list, shapes))} do not fit each other") from error


def as_value(owner: str, value: Any, dtype: DType) -> Any:
    """What a density is asked for, as a tensor of ``dtype``."""
    if not isinstance(value, Tensor):
        value = _as_tensor(_as_array(owner, "value", value), dtype.name)
    return value if value.dtype is dtype else get_operator("cast")(value, dtype.name)


def sizes(owner: str, shape: Any) -> tuple[int, ...]:
    """The ``shape`` of a sample as a tuple. Raises ``TypeError`` for what is no sequence of integers."""
    try:
        if not isinstance(shape, (str, bytes)):
            return tuple(int(n) for n in shape)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{owner}: argument 'shape' should be a sequence of integers, got {shape!r:.80}")


def event_sum(x: Any, rank: int) -> Any:
    """The sum over the last ``rank`` axes."""
    return get_operator("sum")(x, list(range(-rank, 0))) if rank > 0 else x


def is_known_false(condition: Any) -> bool:
    """Whether an element of ``condition`` is False; what is being captured has no value and is given the benefit."""
    return not condition.payload.is_traced and not bool(condition.numpy().all())

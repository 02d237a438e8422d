"""What ONNX operators are written with: argosy's operators and primitives, on tensors that are traced or known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_phi_ops import prim as _prim
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.declare.composition import find_function
from argosy_pir.attributes import Dense
from argosy_pir.types import TensorType
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["count_up", "is_known", "on_values", "operand_of", "phi", "prim", "shape_of", "size_number", "tensor_of"]

Array = np.ndarray[Any, Any]
_CONSTANT = 64  # elements of a tensor that is a constant, not a state, of a program


class _Operators:
    """``phi.softmax(x)``: the operator of that name."""

    def __getattr__(self, name: str) -> Any:
        found = find_function(name)
        if found is None:
            raise AttributeError(f"there is no operator {name}")
        setattr(self, name, found)
        return found


class _Primitives:
    """``prim.add(x, y)`` on tensors: recorded where a program is being made, else computed."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(_prim, name)

        def call(*operands: Any, **attributes: Any) -> Any:
            return on_values(function, *operands, **attributes)

        setattr(self, name, call)
        return call


phi: Any = _Operators()
prim: Any = _Primitives()


def on_values(function: Callable[..., Any], *operands: Any, **attributes: Any) -> Any:
    """``function``, which is written with primitives, of tensors: its results as tensors."""
    tracer = active_tracer()
    if tracer is None:
        results = function(*(to_numpy(x) if isinstance(x, Tensor) else x for x in operands), **attributes)
        wrap: Callable[[Any], Tensor] = tensor_of
    else:
        values = (tracer.value(operand_of(x, tracer)) if isinstance(x, Tensor) else x for x in operands)
        results = function(*values, **attributes)
        wrap = tracer.wrap
    return tuple(map(wrap, results)) if isinstance(results, (tuple, list)) else wrap(results)


def operand_of(x: Any, tracer: Tracer) -> Any:
    """A tensor to record operators on: of a known one, if small, a constant of the program."""
    if not is_known(x) or x.payload.size > _CONSTANT:
        return x
    array = to_numpy(x)
    type = TensorType(array.shape, x.payload.dtype.name)
    return tracer.wrap(tracer.builder.constant(type, Dense(type, array.tobytes())))


def tensor_of(array: Any, name: str = "constant") -> Tensor:
    """A tensor of an array's elements, in memory of its own unless that is C-contiguous; ``name`` is that of the state
    which a program has of it."""
    made = Tensor._wrap(StridedArray.from_array(np.asarray(array, order="C")))
    made.name = name
    return made


def is_known(x: Any) -> bool:
    """Whether a tensor's elements are known while a program is made."""
    return not x.payload.is_traced


def shape_of(x: Any) -> tuple[Any, ...]:
    """A tensor's sizes, symbols among them."""
    return tuple(x.payload.shape)


def count_up(n: Any, axis: int = 0, rank: int = 1) -> Any:
    """0, 1, ... before the size ``n`` in int64, along an axis of that many."""
    shape = tuple(n if i == axis else 1 for i in range(rank))
    if isinstance(n, int):
        return tensor_of(np.arange(n, dtype=np.int64).reshape(shape))
    return prim.iota(shape=shape, axis=axis, dtype="int64")


def size_number(n: Any) -> Any:
    """A size as what arithmetic on int64 takes: a number, or a tensor of a symbol."""
    return n if isinstance(n, int) else phi.full([], n, "int64")

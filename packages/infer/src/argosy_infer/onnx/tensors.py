"""What ONNX operators are written with: argosy's operators and primitives, on tensors that are traced or known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_phi_ops import prim as _prim
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.composition import find_function
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["is_known", "on_values", "phi", "prim", "shape_of", "tensor_of"]

Array = np.ndarray[Any, Any]


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
        results = function(*(tracer.value(x) if isinstance(x, Tensor) else x for x in operands), **attributes)
        wrap = tracer.wrap
    return tuple(map(wrap, results)) if isinstance(results, (tuple, list)) else wrap(results)


def tensor_of(array: Any, name: str = "") -> Tensor:
    """A tensor of an array's elements, in memory of its own unless that is C-contiguous."""
    made = Tensor._wrap(StridedArray.from_array(np.asarray(array, order="C")))
    if name:
        made.name = name
    return made


def is_known(x: Any) -> bool:
    """Whether a tensor's elements are known while a program is made."""
    return not x.payload.is_traced


def shape_of(x: Any) -> tuple[Any, ...]:
    """A tensor's sizes, symbols among them."""
    return tuple(x.payload.shape)

"""``Parameter``: what a model learns, made of data or of nothing yet."""

from __future__ import annotations

from typing import Any

from argosy.nn import lazy
from argosy_tensorcore import naming
from argosy_tensorcore.tensor import Parameter as _Base
from argosy_tensorcore.tensor import Tensor

__all__ = ["Parameter"]


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.is_parameter

    def __call__(cls, data: Any = None, requires_grad: bool = True, **kwargs: Any) -> Tensor:
        """A parameter of ``data`` (a tensor, an array, nested lists; of no elements by default)."""
        given = kwargs.pop("trainable", requires_grad)
        make: Any = _Base
        made = make([] if data is None else data, kwargs.pop("dtype", None), kwargs.pop("name", None), given)
        if kwargs:
            raise TypeError(f"Parameter() takes data, requires_grad, dtype and name; it has no {sorted(kwargs)}")
        made.name = made.name or naming.generate("parameter")
        return made  # type: ignore[no-any-return]


class Parameter(metaclass=_Kind):
    """``Parameter(data)`` is a tensor marked as a parameter; ``isinstance(t, Parameter)`` asks for that mark."""

    @staticmethod
    def from_tensor(tensor: Tensor, **kwargs: Any) -> Tensor:
        """A parameter of the tensor's values."""
        make: Any = Parameter
        return make(tensor, **kwargs)  # type: ignore[no-any-return]

    set_init_func = lazy.set_init_func
    initialize = lazy.initialize
    trainable = Tensor.trainable

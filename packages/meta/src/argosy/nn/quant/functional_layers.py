"""Functions as layers, so that quantisation finds them in a model."""

from __future__ import annotations

from typing import Any

from argosy.nn.layer import Layer
from argosy_phi_ops.declare.operator import get_operator

__all__ = [
    "FloatFunctionalLayer", "add", "concat", "divide", "flatten", "matmul", "multiply", "reshape", "subtract",
    "transpose",
]  # fmt: skip


class FloatFunctionalLayer(Layer):
    """A layer of the operator that is called as its class, without parameters."""

    def forward(self, *inputs: Any, name: str | None = None, **arguments: Any) -> Any:
        """What the operator gives for these arguments."""
        return get_operator(type(self).__name__)(*inputs, **arguments)


class add(FloatFunctionalLayer):
    """``x + y``."""


class subtract(FloatFunctionalLayer):
    """``x - y``."""


class multiply(FloatFunctionalLayer):
    """``x * y``."""


class divide(FloatFunctionalLayer):
    """``x / y``."""


class reshape(FloatFunctionalLayer):
    """``x`` in another ``shape``."""


class transpose(FloatFunctionalLayer):
    """``x`` with axis ``perm[i]`` as its axis ``i``."""


class concat(FloatFunctionalLayer):
    """Tensors one after the other along ``axis``."""


class flatten(FloatFunctionalLayer):
    """``x`` with the axes from ``start_axis`` to ``stop_axis`` as one."""


class matmul(FloatFunctionalLayer):
    """``x @ y``, either transposed before with ``transpose_x`` or ``transpose_y``."""

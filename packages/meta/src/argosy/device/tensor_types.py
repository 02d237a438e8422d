"""Tensors made by the name of their dtype, ``FloatTensor(2, 3)``; and the random generator, asked for as a device's."""

from __future__ import annotations

from typing import Any

from argosy.framework.random import seed as _seed
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "get_rng_state", "manual_seed", "set_rng_state",
]  # fmt: skip


def _maker(name: str, dtype: str) -> Any:
    def make(*args: Any) -> Tensor:
        from argosy.framework.creation import to_tensor

        if len(args) == 1 and not isinstance(args[0], int):
            return to_tensor(args[0], dtype=dtype)
        if not all(isinstance(size, int) and not isinstance(size, bool) for size in args):
            raise TypeError(f"{name}() takes sizes or one list of values, got {args!r}")
        made: Tensor = get_operator("empty")(list(args) or [0], dtype)
        return made

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"A {dtype} tensor: of the list of values, ``{name}([1, 2])``; of these sizes, to be overwritten, "
        f"``{name}(2, 3)``; of no elements, ``{name}()``. Raises TypeError for anything else."
    )
    return make


BFloat16Tensor = _maker("BFloat16Tensor", "bfloat16")
BoolTensor = _maker("BoolTensor", "bool")
ByteTensor = _maker("ByteTensor", "uint8")
CharTensor = _maker("CharTensor", "int8")
DoubleTensor = _maker("DoubleTensor", "float64")
FloatTensor = _maker("FloatTensor", "float32")
HalfTensor = _maker("HalfTensor", "float16")
IntTensor = _maker("IntTensor", "int32")
LongTensor = _maker("LongTensor", "int64")
ShortTensor = _maker("ShortTensor", "int16")


def manual_seed(seed: int) -> None:
    """Restart the random generator from ``seed``. Raises ValueError for one outside 0 to 2**64 - 1."""
    _seed(int(seed))


def get_rng_state(device: object = None) -> Tensor:
    """The state of the generator, one uint64 tensor [seed, counter]: a copy."""
    state: Tensor = context().generator.get_state()
    return state


def set_rng_state(new_state: Tensor, device: object = None) -> None:
    """Put back what :func:`get_rng_state` gave. Raises ValueError for anything else."""
    if not isinstance(new_state, Tensor) or list(new_state.shape) != [2]:
        raise ValueError(
            "device.set_rng_state() takes a uint64 tensor of shape [2], as device.get_rng_state() gives it"
        )
    context().generator.set_state(new_state)

"""What a tensor is and is not: a dense one has no indices, rows or vocabulary, and says so."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any, NoReturn

from argosy_tensorcore.tensor import Tensor

__all__ = ["MEMBERS"]


class VarType(Enum):
    """The kinds of variables that a tensor can be, with Paddle's numbers."""

    DENSE_TENSOR = 7


def _no(self: Tensor) -> bool:
    """False: tensors are dense; sparse ones have a class of their own."""
    return False


def _refuse_dense(name: str, reason: str) -> Callable[..., NoReturn]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"Tensor.{name}: {reason}; this tensor is dense")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raises ``NotImplementedError``: {reason}."
    return method


def to_dense(self: Tensor) -> Tensor:
    """The tensor itself, which is dense."""
    return self


def is_tensor(x: object) -> bool:
    """Whether ``x`` is a tensor."""
    return type(x) is Tensor


def get_tensor(self: Tensor) -> Tensor:
    """The tensor itself."""
    return self


def set_tensor(self: Tensor, value: Any, place: object = None) -> None:
    """Overwrite the elements with those of ``value``."""
    self.set_value(value)


def _grad_fn(self: Tensor) -> Any:
    """The node of the tape that made this tensor, None for a leaf."""
    return self._node


def _num_shard(self: Tensor) -> int | None:
    """Into how many parts the tensor is split; None unless it is distributed."""
    mesh = getattr(self.payload, "mesh", None)
    return None if mesh is None else prod(n for n, p in zip(mesh.shape, self.placements, strict=True) if p.is_shard())


def is_dist(self: Tensor) -> bool:
    """Whether the tensor is distributed over a mesh of processes."""
    return getattr(self.payload, "placements", None) is not None


_STRINGS = ("set_string_list", "set_vocab", "get_map_tensor")
_SPARSE = ("values", "coalesce", "cols", "crows", "indices", "is_coalesced", "nnz")

MEMBERS: dict[str, Any] = {
    **{name: _refuse_dense(name, "a method of sparse tensors") for name in _SPARSE},
    **{
        name: _refuse_dense(name, "sparse tensors come with argosy.sparse")
        for name in ("to_sparse_coo", "to_sparse_csr")
    },
    **{name: _refuse_dense(name, "selected rows are not implemented") for name in ("rows", "get_selected_rows")},
    **{name: _refuse_dense(name, "string tensors are not implemented") for name in _STRINGS},
    **{name: _no for name in ("is_sparse", "is_sparse_coo", "is_sparse_csr")},
    "dense_dim": lambda self: self.ndim,
    "sparse_dim": lambda self: 0,
    "is_dist": is_dist,
    "placements": property(lambda self: getattr(self.payload, "placements", None)),
    "process_mesh": property(lambda self: getattr(self.payload, "mesh", None)),
    "to_dense": to_dense,
    "is_tensor": is_tensor,
    "get_tensor": get_tensor,
    "set_tensor": set_tensor,
    "grad_fn": property(_grad_fn),
    "grad_": property(lambda self: self.grad),
    "num_shard": property(_num_shard),
    "layout": property(lambda self: "NCHW"),
    "type": property(lambda self: VarType.DENSE_TENSOR),
    "block": property(lambda self: None),
}
"""Name -> method or property."""

"""Sparse tensors: a dense Tensor of values, with indices that say where they lie.

The values are an ordinary tensor: gradients reach it, and captured programs and the compiler see nothing but it and the
indices. Functions keep to operators on both; where a result's pattern depends on other patterns, indices are read.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.sparse.patterns import distinct, keys_of, positions_of, row_pointers
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.printing import format_array
from argosy_tensorcore.shape import Size
from argosy_tensorcore.tensor import Tensor

__all__ = ["SparseCooTensor", "SparseCsrTensor", "SparseTensor", "as_sparse", "scatter_sum"]


def scatter_sum(values: Any, places: Any, count: int) -> Any:
    """``count`` rows, of which row ``places[i]`` is the sum of all ``values[i]``; the others are 0."""
    exact = values.cast("int64") if values.dtype.name == "bool" else values
    zeros = op("zeros")([count, *values.shape[1:]], exact.dtype.name)
    return op("index_add")(zeros, places, 0, exact).cast(values.dtype.name)


class SparseTensor:
    """What sparse tensors have in common; made by :func:`argosy.sparse.sparse_coo_tensor` and its like.

    ``shape`` is that of the dense tensor that it stands for. ``stop_gradient``, ``grad`` and ``backward`` are those of
    its values: ``grad`` is a sparse tensor of the same positions. Sums, differences, products and quotients of two, and
    ``@``, are those of :mod:`argosy.sparse`.
    """

    _values: Any
    _shape: tuple[int, ...]
    __array_ufunc__ = None  # ndarray * sparse runs __rmul__

    def _with_values(self, values: Any) -> Self:
        """A sparse tensor of the same positions."""
        raise NotImplementedError

    def to_sparse_coo(self, sparse_dim: int = 2) -> SparseCooTensor:
        """The tensor with coordinates; one that has them stays as it is, whatever ``sparse_dim`` says, as in Paddle."""
        raise NotImplementedError

    def values(self) -> Any:
        """The values [nnz, ...] as a dense tensor."""
        return self._values

    def nnz(self) -> int:
        """How many values there are, zeros among them included."""
        return int(self._values.shape[0])

    @property
    def shape(self) -> Size:
        """Sizes of the axes."""
        return Size(self._shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements of the dense tensor."""
        return math.prod(self._shape)

    @property
    def dtype(self) -> Any:
        """Element type of the values."""
        return self._values.dtype

    @property
    def place(self) -> Any:
        """Where the values are."""
        return self._values.place

    def sparse_dim(self) -> int:
        """How many axes, from the first, are sparse."""
        return len(self._shape) - self.dense_dim()

    def dense_dim(self) -> int:
        """How many axes, the last ones, the values have themselves."""
        return len(self._values.shape) - 1

    def is_sparse(self) -> bool:
        """True."""
        return True

    def is_dense(self) -> bool:
        """False."""
        return False

    def is_sparse_coo(self) -> bool:
        """Whether the positions are coordinates."""
        return isinstance(self, SparseCooTensor)

    def is_sparse_csr(self) -> bool:
        """Whether the positions are compressed rows."""
        return isinstance(self, SparseCsrTensor)

    def is_same_shape(self, y: Any) -> bool:
        """Whether ``y``, sparse or dense, has this shape."""
        return list(self._shape) == list(y.shape)

    def to_dense(self) -> Any:
        """The dense tensor: values at one position are added, the others are 0."""
        return self.to_sparse_coo().to_dense()

    def to_sparse_csr(self) -> SparseCsrTensor:
        """The tensor with compressed rows. Raises ValueError unless it has two or three axes, all of them sparse."""
        return self.to_sparse_coo().to_sparse_csr()

    # ---- the graph of gradients

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradients reach the values."""
        return bool(self._values.stop_gradient)

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._values.stop_gradient = value

    @property
    def grad(self) -> Self | None:
        """The gradient of the values at their positions; None where there is none."""
        return None if self._values.grad is None else self._with_values(self._values.grad)

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Set the gradient to 0, or remove it."""
        self._values.clear_gradient(set_to_zero)

    clear_grad = clear_gradient

    def backward(self, grad_tensor: Any = None, retain_graph: bool = False) -> None:
        """Gradients of the values, weighted by ``grad_tensor`` (a sparse tensor of these positions, or its values)."""
        weights = grad_tensor.values() if isinstance(grad_tensor, SparseTensor) else grad_tensor
        if weights is None and self.nnz() != 1:
            weights = op("ones_like")(self._values)
        self._values.backward(weights, retain_graph)

    def detach(self) -> Self:
        """The same without its past."""
        return self._with_values(self._values.detach())

    def cpu(self) -> Self:
        """The tensor itself."""
        return self

    # ---- Python

    def __len__(self) -> int:
        return self._shape[0]

    def _text(self, **parts: Any) -> str:
        head = f"Tensor(shape={list(self._shape)}, dtype={self.dtype}, place={self.place!r}"
        lines = [f"{head}, stop_gradient={self.stop_gradient}"]
        for name, part in {**parts, "values": self._values}.items():
            shown = repr(part.payload) if part.payload.is_traced else format_array(part.numpy(), 8 + len(name))
            lines.append(f"       {name}={shown}")
        return ",\n".join(lines) + ")"

    def __add__(self, other: Any) -> Any:
        return _function("add")(self, other)

    def __sub__(self, other: Any) -> Any:
        return _function("subtract")(self, other)

    def __mul__(self, other: Any) -> Any:
        return _function("multiply")(self, other)

    def __rmul__(self, other: Any) -> Any:
        return _function("multiply")(self, other)

    def __truediv__(self, other: Any) -> Any:
        return _function("divide")(self, other)

    def __matmul__(self, other: Any) -> Any:
        return _function("matmul")(self, other)

    def __neg__(self) -> Any:
        return _function("neg")(self)


def _function(name: str) -> Any:
    import argosy.sparse

    return getattr(argosy.sparse, name)


class SparseCooTensor(SparseTensor):
    """Values [nnz, *dense axes] at the coordinates ``indices`` [sparse axes, nnz], in any order, perhaps repeated."""

    def __init__(self, indices: Any, values: Any, shape: Sequence[int], coalesced: bool = False) -> None:
        """Trusts what it is given; ``coalesced`` says that the coordinates rise in row-major order, none twice."""
        self._indices, self._values, self._shape = indices, values, tuple(int(n) for n in shape)
        self._coalesced = coalesced

    def _with_values(self, values: Any) -> SparseCooTensor:
        return SparseCooTensor(self._indices, values, self._shape, self._coalesced)

    def indices(self) -> Any:
        """The coordinates [sparse axes, nnz] as a dense tensor."""
        return self._indices

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """Sizes of the sparse axes."""
        return self._shape[: self.sparse_dim()]

    def keys(self) -> Any:
        """The row-major numbers of the positions, on the host."""
        return keys_of(self._indices.numpy(), self.sparse_shape)

    def places(self) -> Any:
        """The row-major numbers of the positions, as a tensor [nnz]."""
        weights = [math.prod(self.sparse_shape[i + 1 :]) for i in range(self.sparse_dim())]
        rows = self._indices.cast("int64")
        return (rows * Tensor(np.array(weights, np.int64)[:, None])).sum(0)

    def is_coalesced(self) -> bool:
        """Whether the coordinates are known to rise, none of them twice."""
        return self._coalesced

    def coalesce(self) -> SparseCooTensor:
        """The same with each coordinate once, in row-major order; values at one position are added."""
        if self._coalesced:
            return self
        keys = self.keys()
        if (np.diff(keys) > 0).all():
            return SparseCooTensor(self._indices, self._values, self._shape, True)
        found, places = distinct(keys)
        positions = positions_of(found, self.sparse_shape, self._indices.numpy().dtype)
        values = scatter_sum(self._values, Tensor(places), len(found))
        return SparseCooTensor(Tensor(positions), values, self._shape, True)

    def to_dense(self) -> Any:
        """The dense tensor: values at one position are added, the others are 0."""
        flat = scatter_sum(self._values, self.places(), math.prod(self.sparse_shape))
        return flat.reshape(list(self._shape))

    def to_sparse_coo(self, sparse_dim: int = 2) -> SparseCooTensor:
        """The tensor itself."""
        return self

    def to_sparse_csr(self) -> SparseCsrTensor:
        """The tensor with compressed rows. Raises ValueError unless it has two or three axes, all of them sparse."""
        if self.ndim not in (2, 3) or self.dense_dim():
            axes = f"{self.sparse_dim()} sparse and {self.dense_dim()} dense axes"
            raise ValueError(f"to_sparse_csr() takes a tensor of 2 or 3 sparse axes; {list(self._shape)} has {axes}")
        found = self.coalesce()
        indices = found._indices.numpy()
        pointers = row_pointers(keys_of(indices[:-1], self._shape[:-1]), self._shape)
        made = Tensor(pointers.astype(indices.dtype)), found._indices[-1]
        return SparseCsrTensor(*made, found._values, self._shape)

    def __repr__(self) -> str:
        return self._text(indices=self._indices)


class SparseCsrTensor(SparseTensor):
    """Matrices, one or a batch, by rows: ``values[crows[i]:crows[i + 1]]`` lie in row i, in the columns ``cols`` there.

    In a batch the rows + 1 pointers of each matrix follow each other, each beginning with 0, as do columns and values.
    """

    def __init__(self, crows: Any, cols: Any, values: Any, shape: Sequence[int]) -> None:
        """Trusts what it is given."""
        self._crows, self._cols, self._values = crows, cols, values
        self._shape = tuple(int(n) for n in shape)

    def _with_values(self, values: Any) -> SparseCsrTensor:
        return SparseCsrTensor(self._crows, self._cols, values, self._shape)

    def crows(self) -> Any:
        """The row pointers as a dense tensor: [batch * (rows + 1)]."""
        return self._crows

    def cols(self) -> Any:
        """The columns [nnz] as a dense tensor."""
        return self._cols

    def rows(self) -> Any:
        """The row of each value, numbered through all matrices of the batch, as a tensor [nnz]."""
        pointers = self._crows.cast("int64").reshape([-1, self._shape[-2] + 1])
        ends = (pointers[:, 1:] - pointers[:, :-1]).reshape([-1]).cumsum(0)
        return op("searchsorted")(ends, op("arange")(self.nnz(), dtype="int64"), right=True)

    def to_sparse_coo(self, sparse_dim: int = 2) -> SparseCooTensor:
        """The tensor with coordinates, of all its axes."""
        rows = self.rows().cast(self._cols.dtype.name)
        count = self._shape[-2]
        before = [rows] if self.ndim == 2 else [rows // count, rows % count]
        return SparseCooTensor(op("stack")([*before, self._cols]), self._values, self._shape)

    def __repr__(self) -> str:
        return self._text(crows=self._crows, cols=self._cols)


def as_sparse(owner: str, x: Any, name: str = "x") -> Any:
    """``x``, which must be a sparse tensor: raises TypeError naming the function and the argument otherwise."""
    if isinstance(x, SparseTensor):
        return x
    kind = "a dense Tensor" if isinstance(x, Tensor) else f"{x!r:.60} ({type(x).__name__})"
    raise TypeError(f"{owner}(): argument {name!r} must be a sparse tensor, got {kind}")

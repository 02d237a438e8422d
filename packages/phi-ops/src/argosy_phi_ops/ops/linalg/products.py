"""Products of vectors, matrices and tensors, all by `prim.dot_general` or elementwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import INPUT_OTHER, axis_of
from argosy_phi_ops.reference.kernels.registry import is_narrow_float, round_narrow, widen
from argosy_tensorcore.tensor import Tensor


@operator(promote="binary", aliases=INPUT_OTHER)
def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The matrix product over the last two axes, batched over the leading ones with broadcasting.

    A 1-D operand is a row (``x``) or a column (``y``) whose axis the result lacks. ``transpose_x`` and ``transpose_y``
    exchange the last two axes first. Raises :class:`ShapeError` when the contracted sizes differ.
    """
    rank_x, rank_y = x.ndim, y.ndim
    if not rank_x or not rank_y:
        raise ShapeError(f"matmul needs at least one axis on both sides, got {x.type} and {y.type}")
    contract_x = rank_x - 2 if transpose_x and rank_x > 1 else rank_x - 1
    contract_y = rank_y - 1 if transpose_y or rank_y == 1 else rank_y - 2
    if x.shape[contract_x] != y.shape[contract_y]:
        error = ShapeError(
            f"matmul: axis {contract_x} of x has {x.shape[contract_x]} elements, axis {contract_y} of y, which it is "
            f"multiplied with, has {y.shape[contract_y]}; the two should be equal"
        )
        error.sizes = x.shape[contract_x], y.shape[contract_y]
        raise error
    batch = prim.broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    if rank_y <= 2 or not batch:  # one matrix for all rows: no batch axes needed
        return prim.dot_general(x, y, lhs_contract=(contract_x,), rhs_contract=(contract_y,))
    x, y = (prim.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (x, y))
    axes = tuple(range(len(batch)))
    return prim.dot_general(
        x,
        y,
        lhs_contract=(x.ndim - 2 if transpose_x and rank_x > 1 else x.ndim - 1,),
        rhs_contract=(y.ndim - 1 if transpose_y else y.ndim - 2,),
        lhs_batch=axes,
        rhs_batch=axes,
    )


@matmul.reference
def _(x: np.ndarray, y: np.ndarray, transpose_x: bool, transpose_y: bool) -> np.ndarray:
    left = x.swapaxes(-1, -2) if transpose_x and x.ndim > 1 else x
    right = y.swapaxes(-1, -2) if transpose_y and y.ndim > 1 else y
    if is_narrow_float(left.dtype):
        return round_narrow(np.matmul(widen(left), widen(right)), left.dtype)  # numpy widens bfloat16 in its result
    return np.matmul(left, right)


@matmul.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Two matrices as they are: ``dot`` costs half of what ``np.matmul`` costs for small ones."""
    plain = all(t.ndim == 2 and t.dtype.name in ("float32", "float64") for t in types)
    if not plain or attributes["transpose_x"] or attributes["transpose_y"]:
        return None
    return np.ndarray.dot


@matmul.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((5, 2, 3)), rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((5, 3, 2)), rng.standard_normal((1, 4, 3)), transpose_x=True, transpose_y=True)
    yield Sample(rng.standard_normal(3), rng.standard_normal((2, 3, 4)))


@operator(promote="binary")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices (or stacks of them)."""
    return matmul(input, mat2)


@mm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))


@operator(promote="same", aliases={"mat2": "y"})
def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of two stacks of matrices [b, m, k] and [b, k, n]."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ShapeError(f"bmm takes x [batch, n, k] and y [batch, k, m], got {x.type} and {y.type}")
    return matmul(x, y)


@bmm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5)))


@operator(promote="same")
def mv(x: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if x.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"mv takes a matrix and a vector, got {x.type} and {vec.type}")
    return matmul(x, vec)


@mv.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3))


@operator(promote="binary")
def dot(x: Tensor, y: Tensor) -> Tensor:
    """The sum of products over the last axis, of two vectors or two stacks of them."""
    if x.shape != y.shape or x.ndim not in (1, 2):
        raise ShapeError(f"dot takes two vectors or two matrices of one shape, got {x.type} and {y.type}")
    return prim.reduce_sum(prim.mul(x, y), axes=(x.ndim - 1,))


@dot.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(3), rng.standard_normal(3))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))


@operator(promote="same")
def vecdot(x: Tensor, y: Tensor, axis: int = -1) -> Tensor:
    """The sum along `axis` of ``conj(x) * y`` with broadcasting."""
    product = prim.mul(prim.conj(x) if x.dtype.startswith("complex") else x, y)
    return prim.reduce_sum(product, axes=(axis_of("vecdot", axis, product.ndim),))


@vecdot.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3))
    yield Sample(np.array([1j, 2.0]), np.array([1j, 1.0]))


@operator(promote="binary")
def inner(x: Tensor, y: Tensor) -> Tensor:
    """The sum of products over the last axes of both; a product where one is 0-D."""
    if not x.ndim or not y.ndim:
        return prim.mul(x, y)
    return prim.dot_general(x, y, lhs_contract=(x.ndim - 1,), rhs_contract=(y.ndim - 1,))


@inner.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((4, 3)))
    yield Sample(np.asarray(2.0), rng.standard_normal(3))


@operator(promote="widest", aliases={"input": "x", "vec2": "y"})
def outer(x: Tensor, y: Tensor) -> Tensor:
    """All products of elements of two flattened tensors, [size of x, size of y]."""
    sizes = (x.type.size, y.type.size)
    left, right = (prim.reshape(v, shape=(n,)) for v, n in zip((x, y), sizes, strict=True))
    return prim.mul(prim.broadcast(left, shape=sizes, axes=(0,)), prim.broadcast(right, shape=sizes, axes=(1,)))


@outer.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(2), rng.standard_normal((2, 2)))


@operator(promote="same", inplace=True)
def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * input + alpha * x @ y``."""
    product = matmul(x, y)
    scaled = product if alpha == 1 else prim.mul(product, alpha)
    return prim.add(input if beta == 1 else prim.mul(input, beta), scaled)


@addmm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(4), rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), 0.5, 2.0)


@operator(promote="same", inplace=True)
def baddbmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * input + alpha * x @ y`` for stacks of matrices."""
    return addmm(input, x, y, beta, alpha)


@baddbmm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5)))


@operator(promote="binary")
def tensordot(x: Tensor, y: Tensor, axes: int | Sequence[Any] = 2) -> Tensor:
    """The sum of products over the paired `axes`: two lists, one list for both, or how many last and first axes."""
    if isinstance(axes, int):
        pairs = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    elif axes and isinstance(axes[0], int):
        pairs = tuple(axes), tuple(axes)
    else:
        first, second = tuple(axes[0]), tuple(axes[-1])
        pairs = (*first, *second[len(first) :]), (*second, *first[len(second) :])  # the longer list goes on for both
    if not pairs[0]:
        return _all_products(x, y)
    left = tuple(axis_of("tensordot", a, x.ndim) for a in pairs[0])
    right = tuple(axis_of("tensordot", a, y.ndim) for a in pairs[1])
    return prim.dot_general(x, y, lhs_contract=left, rhs_contract=right)


def _all_products(x: Tensor, y: Tensor) -> Tensor:
    """Each element of `x` with each of `y`: the axes of `x`, then those of `y`."""
    shape, rank = (*x.shape, *y.shape), x.ndim
    left = prim.broadcast(x, shape=shape, axes=tuple(range(rank)))
    return prim.mul(left, prim.broadcast(y, shape=shape, axes=tuple(range(rank, rank + y.ndim))))


@tensordot.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4, 5))
    yield Sample(x, y)
    yield Sample(x, y, [[1, 2], [0, 1]])
    yield Sample(x, rng.standard_normal((4, 5)), 1)
    yield Sample(x, rng.standard_normal((4, 5)), 0)


@operator(promote="binary")
def kron(x: Tensor, y: Tensor) -> Tensor:
    """The Kronecker product: a block ``x[i, j] * y`` for each element of `x`."""
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - v.ndim) + tuple(v.shape) for v in (x, y))
    paired = tuple(n for pair in zip(left, right, strict=True) for n in pair)
    spread = [
        prim.broadcast(prim.reshape(v, shape=shape), shape=paired, axes=tuple(range(first, 2 * rank, 2)))
        for v, shape, first in ((x, left, 0), (y, right, 1))
    ]
    return prim.reshape(prim.mul(*spread), shape=tuple(m * n for m, n in zip(left, right, strict=True)))


@kron.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 2)))
    yield Sample(rng.standard_normal(2), rng.standard_normal((2, 2)))


@operator(promote="binary", aliases={"dim": "axis"})
def cross(x: Tensor, y: Tensor, axis: int = 9) -> Tensor:
    """The cross product along an axis of size 3, by default the first such."""
    if axis == 9:
        axis = next((i for i, n in enumerate(x.shape) if n == 3), -1)
    at = axis_of("cross", axis, x.ndim)
    if x.shape[at] != 3 or y.shape != x.shape:
        raise ShapeError(f"cross takes tensors of one shape with an axis of size 3, got {x.type} and {y.type}")

    def rotate(v: Tensor, by: int) -> Tensor:
        parts = []
        for i in range(3):
            start, limit = [0] * v.ndim, list(v.shape)
            start[at], limit[at] = (i + by) % 3, (i + by) % 3 + 1
            parts.append(prim.slice(v, start=tuple(start), limit=tuple(limit), stride=(1,) * v.ndim))
        return prim.concat(*parts, axis=at)

    return prim.sub(prim.mul(rotate(x, 1), rotate(y, 2)), prim.mul(rotate(x, 2), rotate(y, 1)))


@cross.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), 0)

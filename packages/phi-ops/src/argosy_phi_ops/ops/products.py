"""Products of vectors, matrices and tensors, all by `prim.dot_general` or elementwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.arguments import axis_of
from argosy_phi_ops.ops.linalg import matmul
from argosy_tensorcore.tensor import Tensor


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
        raise ShapeError(f"bmm takes two stacks of as many matrices, got {x.type} and {y.type}")
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

    def turned(v: Tensor, by: int) -> Tensor:
        parts = []
        for i in range(3):
            start, limit = [0] * v.ndim, list(v.shape)
            start[at], limit[at] = (i + by) % 3, (i + by) % 3 + 1
            parts.append(prim.slice(v, start=tuple(start), limit=tuple(limit), stride=(1,) * v.ndim))
        return prim.concat(*parts, axis=at)

    return prim.sub(prim.mul(turned(x, 1), turned(y, 2)), prim.mul(turned(x, 2), turned(y, 1)))


@cross.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), 0)


# Einstein summation


@operator(promote="same")
def einsum(equation: str, operands: Sequence[Tensor]) -> Tensor:
    """Einstein summation: letters name axes; those the output lacks are summed. ``...`` stands for leading axes.

    Operands are multiplied from left to right, summing each letter as soon as no later operand needs it.
    """
    terms, output = _parse_equation(equation, operands)
    names, result = _diagonalised(terms[0], operands[0])
    for i, (term, operand) in enumerate(zip(terms[1:], operands[1:], strict=True), 1):
        later = set(output).union(*terms[i + 1 :])
        names, result = _contracted(names, result, *_diagonalised(term, operand), later)
    lost = tuple(i for i, name in enumerate(names) if name not in output)
    if lost:
        result = prim.reduce_sum(result, axes=lost)
        names = [name for name in names if name in output]
    order = tuple(names.index(name) for name in output)
    return result if order == tuple(range(len(order))) else prim.transpose(result, permutation=order)


def _parse_equation(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """The axis names of each operand and of the output; those of an ellipsis are "0", "1", ... from the right."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",")
    if len(words) != len(operands):
        raise ShapeError(f"einsum {equation!r} describes {len(words)} operands, got {len(operands)}")
    terms = []
    for word, operand in zip(words, operands, strict=True):
        hidden = operand.ndim - len(word.replace("...", "")) if "..." in word else 0
        names = _spelled(word, hidden)
        if len(names) != operand.ndim or hidden < 0:
            raise ShapeError(f"einsum {equation!r}: the term {word!r} does not fit {operand.type}")
        terms.append(names)
    widest = max((sum(name.isdigit() for name in names) for names in terms), default=0)
    if arrow:
        return terms, _spelled(right, widest)
    letters = [name for names in terms for name in names if not name.isdigit()]
    once = sorted(name for name in set(letters) if letters.count(name) == 1)
    return terms, [*_spelled("...", widest), *once]


def _spelled(word: str, hidden: int) -> list[str]:
    before, dots, after = word.partition("...")
    return [*before, *(str(i) for i in reversed(range(hidden))), *after] if dots else list(word)


def _diagonalised(names: list[str], x: Tensor) -> tuple[list[str], Tensor]:
    """Axes with the same name replaced by their diagonal."""
    for name in dict.fromkeys(names):
        places = [i for i, other in enumerate(names) if other == name]
        while len(places) > 1:
            last = places.pop()
            index = [prim.iota(shape=x.shape, axis=axis, dtype="int64") for axis in (places[0], last)]
            x = prim.reduce_sum(prim.select(prim.eq(*index), x, 0), axes=(last,))
            names = [*names[:last], *names[last + 1 :]]
    return names, x


def _contracted(left: list[str], x: Tensor, right: list[str], y: Tensor, later: set[str]) -> tuple[list[str], Tensor]:
    """The product of two operands, summed over the shared names that nothing later needs."""
    x, y = _matched(left, x, right, y)
    shared = [name for name in left if name in right]
    batch = [name for name in shared if name in later]
    summed = [name for name in shared if name not in later]
    product = prim.dot_general(
        x,
        y,
        lhs_contract=tuple(left.index(n) for n in summed),
        rhs_contract=tuple(right.index(n) for n in summed),
        lhs_batch=tuple(left.index(n) for n in batch),
        rhs_batch=tuple(right.index(n) for n in batch),
    )
    names = [*batch, *(n for n in left if n not in shared), *(n for n in right if n not in shared)]
    return names, product


def _matched(left: list[str], x: Tensor, right: list[str], y: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands with shared axes of equal size: those of size one are repeated."""
    sizes: dict[str, Any] = {}
    for names, v in ((left, x), (right, y)):
        for name, n in zip(names, v.shape, strict=True):
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
    wanted = [tuple(sizes[n] if n in left and n in right else m for n, m in zip(names, v.shape, strict=True))
              for names, v in ((left, x), (right, y))]  # fmt: skip
    return prim.broadcast_to(x, wanted[0]), prim.broadcast_to(y, wanted[1])


@einsum.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    a, b, c = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    yield Sample("ij,jk->ik", [a, b])
    yield Sample("ij,jk,kl->li", [a, b, c])
    yield Sample("ij->ji", [a])
    yield Sample("ij,ij", [a, a])
    yield Sample("ij->", [a])
    yield Sample("ii->i", [rng.standard_normal((3, 3))])
    yield Sample("...ij,...jk->...ik", [rng.standard_normal((5, 2, 3)), rng.standard_normal((1, 3, 4))])
    yield Sample("bhqd,bhkd->bhqk", [rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 6, 5))])
    yield Sample("i,j->ij", [a[0], b[0]])

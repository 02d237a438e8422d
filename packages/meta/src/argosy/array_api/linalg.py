"""Linear algebra of the array API standard: functions of the namespace, and its extension ``linalg``."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

from argosy.array_api.manipulation import normal_axes, permute_dims, reshape
from argosy.array_api.promotion import Operand, apply, convert, promote_operands
from argosy.array_api.reductions import sum
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """Eigenvalues in order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """A matrix with orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors, singular values in falling order, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _one(found: Any) -> Tensor:
    tensor: Tensor = found
    return tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, or of a matrix and a vector."""
    return _one(apply("matmul", *promote_operands("matmul", x1, x2)))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows and columns exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): an array of {x.ndim} axes holds no matrix")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: builtins.int | tuple[Sequence[builtins.int], Sequence[builtins.int]] = 2
) -> Tensor:
    """Products summed over axes: the last of one and the first of the other, or those named for each."""
    first, second = promote_operands("tensordot", x1, x2)
    if isinstance(axes, builtins.int):
        left, right = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        left = normal_axes("tensordot", tuple(axes[0]), x1.ndim)
        right = normal_axes("tensordot", tuple(axes[1]), x2.ndim)
    rows = [i for i in range(x1.ndim) if i not in left]
    columns = [i for i in range(x2.ndim) if i not in right]
    summed = _count(x1, left)
    product = apply(
        "matmul",
        reshape(permute_dims(first, (*rows, *left)), (_count(x1, rows), summed)),
        reshape(permute_dims(second, (*right, *columns)), (summed, _count(x2, columns))),
    )
    return reshape(product, (*[x1.shape[i] for i in rows], *[x2.shape[i] for i in columns]))


def _count(x: Tensor, axes: Sequence[builtins.int]) -> builtins.int:
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: builtins.int = -1) -> Tensor:
    """The product of vectors along ``axis``, the first conjugated."""
    first, second = promote_operands("vecdot", x1, x2)
    if first.shape[axis] != second.shape[axis]:
        sizes = f"{first.shape[axis]} and {second.shape[axis]}"
        raise ValueError(f"vecdot(): axis {axis} of both arguments should have one size, got {sizes}")
    if first.dtype.kind == "c":
        first = apply("conj", first)
    return convert(sum(apply("multiply", first, second), axis=axis), first.dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of the elements of two vectors: [n, m]."""
    first, second = promote_operands("outer", x1, x2)
    return _one(apply("multiply", reshape(first, (-1, 1)), reshape(second, (1, -1))))


def cross(x1: Tensor, x2: Tensor, /, *, axis: builtins.int = -1) -> Tensor:
    """The cross product of vectors of three elements along ``axis``."""
    first, second = promote_operands("cross", x1, x2)
    if first.shape[axis] != 3 or second.shape[axis] != 3:
        raise ValueError(f"cross(): axis {axis} of both should have 3 elements, got {first.shape} and {second.shape}")
    first, second = apply("broadcast_tensors", [first, second])
    return _one(apply("cross", first, second, axis % first.ndim))


def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """The lower (``upper``) triangle L of positive definite matrices ``L L^H``."""
    return _one(apply("cholesky", x, upper))


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices."""
    return _one(apply("det", x))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of determinants and the logarithms of their sizes."""
    found = apply("slogdet", x)
    size = found[1]
    return SlogdetResult(found[0], apply("real", size) if size.dtype.kind == "c" else size)


def diagonal(x: Tensor, /, *, offset: builtins.int = 0) -> Tensor:
    """The diagonals of matrices, ``offset`` above the main one."""
    return _one(apply("diagonal", x, offset, -2, -1))


def trace(x: Tensor, /, *, offset: builtins.int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex."""
    return EigResult(*apply("eig", x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of square matrices, complex."""
    return _one(apply("eigvals", x))


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*apply("eigh", x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of Hermitian matrices."""
    return _one(apply("eigvalsh", x))


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices."""
    return _one(apply("inv", x))


def pinv(x: Tensor, /, *, rtol: Operand | None = None) -> Tensor:
    """The pseudo-inverses of matrices; singular values up to ``rtol`` times the largest count as zero."""
    if rtol is None:
        return _one(apply("pinv", x))
    found = svd(x, full_matrices=False)
    kept = apply("greater_than", found.S, _tolerance(found.S, rtol))
    inverse = apply("where", kept, apply("reciprocal", found.S), apply("zeros_like", found.S))
    left = apply("conj", matrix_transpose(found.Vh))
    scaled = apply("multiply", left, convert(apply("unsqueeze", inverse, -2), x.dtype))
    return matmul(scaled, apply("conj", matrix_transpose(found.U)))


def _tolerance(values: Tensor, rtol: Operand) -> Tensor:
    largest = apply("max", values, -1, keepdim=True) if values.shape[-1] else apply("sum", values, -1, keepdim=True)
    factor = apply("unsqueeze", convert(rtol, values.dtype), -1) if isinstance(rtol, Tensor) else rtol
    return _one(apply("multiply", largest, factor))


def matrix_rank(x: Tensor, /, *, rtol: Operand | None = None) -> Tensor:
    """How many singular values exceed ``rtol`` (by default the larger size times the precision) times the largest."""
    from argosy.array_api.dtypes import finfo

    values = svdvals(x)
    used = builtins.max(x.shape[-2], x.shape[-1]) * finfo(x.dtype).eps if rtol is None else rtol
    return _one(apply("count_nonzero", apply("greater_than", values, _tolerance(values, used)), -1))


def matrix_norm(x: Tensor, /, *, keepdims: builtins.bool = False, ord: builtins.float | str | None = "fro") -> Tensor:
    """Norms of matrices: "fro", "nuc", or of order 1, 2, inf and their negatives."""
    found = _matrix_norm(x, "fro" if ord is None else ord)
    return reshape(found, (*found.shape, 1, 1)) if keepdims else found


def _matrix_norm(x: Tensor, ord: builtins.float | str) -> Tensor:
    if ord == "fro":
        size = apply("abs", x)
        return _one(apply("sqrt", sum(apply("square", size), axis=(-2, -1))))
    if ord == "nuc":
        return sum(svdvals(x), axis=-1)
    values = svdvals(x) if ord in (2, -2) else sum(apply("abs", x), axis=-2 if ord in (1, -1) else -1)
    return _one(apply("max" if float(ord) > 0 else "min", values, -1))


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: builtins.int | tuple[builtins.int, ...] | None = None,
    keepdims: builtins.bool = False,
    ord: builtins.float = 2,
) -> Tensor:
    """The norm of order ``ord`` of vectors over axes, all by default."""
    from argosy.array_api import reductions

    size = apply("abs", x)
    if ord == float("inf"):
        return reductions.max(size, axis=axis, keepdims=keepdims)
    if ord == -float("inf"):
        return reductions.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return convert(reductions.count_nonzero(size, axis=axis, keepdims=keepdims), size.dtype)
    powers = sum(apply("pow", size, float(ord)), axis=axis, keepdims=keepdims)
    return _one(apply("pow", powers, 1.0 / ord))


def matrix_power(x: Tensor, n: builtins.int, /) -> Tensor:
    """Square matrices to a whole power."""
    return _one(apply("matrix_power", x, n))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Matrices as products of orthonormal columns and an upper triangle."""
    return QRResult(*apply("qr", x, mode))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution X of ``x1 X = x2``; of a vector ``x2``, a vector."""
    first, second = promote_operands("solve", x1, x2)
    if second.ndim == 1:
        return reshape(apply("solve", first, reshape(second, (-1, 1))), tuple(first.shape[:-1]))
    return _one(apply("solve", first, second))


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """Singular values and vectors: ``x = U diag(S) Vh``."""
    return SVDResult(*apply("svd", x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values in falling order."""
    return _one(apply("svdvals", x))

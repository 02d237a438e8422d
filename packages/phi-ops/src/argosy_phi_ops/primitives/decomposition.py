"""Matrix decompositions over the last two axes; leading axes are a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives.checks import COMPLEX, REAL_OF, check_dtype, check_same_dtype, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import Primitive, primitive
from argosy_pir.dims import SymExpr, minimum
from argosy_pir.types import TensorType

_SOLVABLE = ("float32", "float64", *COMPLEX)
_COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}


def _matrix(name: str, x: TensorType, square: bool = False) -> tuple[int | SymExpr, int | SymExpr]:
    check_dtype(name, x, _SOLVABLE)
    require(len(x.shape) >= 2, f"prim.{name}: {x} has no two axes")
    rows, columns = x.shape[-2:]
    require(not square or rows == columns, f"prim.{name}: {x} is not square")
    return rows, columns


def _smaller_size(rows: int | SymExpr, columns: int | SymExpr) -> int | SymExpr:
    if isinstance(rows, int) and isinstance(columns, int):
        return min(rows, columns)
    return rows if rows == columns else minimum(rows, columns)


@primitive("decomposition")
def cholesky(x: TensorType) -> TensorType:
    """The lower factor L of a Hermitian positive definite ``x`` = L L^H."""
    _matrix("cholesky", x, square=True)
    return x


@primitive("decomposition")
def lu(x: TensorType) -> tuple[TensorType, TensorType, TensorType]:
    """Partial-pivoting LU: the packed factors, the row exchanges (int32, 0-based, one for each step), and the order
    of the rows that they make (int32, 0-based)."""
    rows, columns = _matrix("lu", x)
    batch = x.shape[:-2]
    return x, TensorType((*batch, _smaller_size(rows, columns)), "int32"), TensorType((*batch, rows), "int32")


@primitive("decomposition")
def qr(x: TensorType, *, full: bool = False) -> tuple[TensorType, TensorType]:
    """Orthonormal Q and upper triangular R of ``x``; Q is square when ``full``."""
    rows, columns = _matrix("qr", x)
    inner = rows if full else _smaller_size(rows, columns)
    batch = x.shape[:-2]
    return TensorType((*batch, rows, inner), x.dtype), TensorType((*batch, inner, columns), x.dtype)


@primitive("decomposition")
def svd(x: TensorType, *, full: bool = False) -> tuple[TensorType, TensorType, TensorType]:
    """U, the singular values in descending order, and V^H."""
    rows, columns = _matrix("svd", x)
    inner, batch = _smaller_size(rows, columns), x.shape[:-2]
    return (
        TensorType((*batch, rows, rows if full else inner), x.dtype),
        TensorType((*batch, inner), REAL_OF.get(x.dtype, x.dtype)),
        TensorType((*batch, columns if full else inner, columns), x.dtype),
    )


@primitive("decomposition")
def eigh(x: TensorType, *, lower: bool = True) -> tuple[TensorType, TensorType]:
    """Eigenvalues in ascending order and eigenvectors (columns) of a Hermitian matrix, read from one triangle."""
    rows, _ = _matrix("eigh", x, square=True)
    return TensorType((*x.shape[:-2], rows), REAL_OF.get(x.dtype, x.dtype)), x


@primitive("decomposition")
def eig(x: TensorType) -> tuple[TensorType, TensorType]:
    """Eigenvalues and right eigenvectors (columns) of a square matrix, complex."""
    rows, _ = _matrix("eig", x, square=True)
    dtype = _COMPLEX_OF.get(x.dtype, x.dtype)
    return TensorType((*x.shape[:-2], rows), dtype), TensorType(x.shape, dtype)


@primitive("decomposition")
def triangular_solve(
    a: TensorType,
    b: TensorType,
    *,
    lower: bool = True,
    transpose: bool = False,
    conjugate: bool = False,
    unit: bool = False,
    left: bool = True,
) -> TensorType:
    """X of ``op(a) X = b`` (``X op(a) = b`` unless ``left``), ``op`` transposing and conjugating as told.

    Only the named triangle of ``a`` is read, its diagonal taken as ones when ``unit``.
    """
    check_same_dtype("triangular_solve", (a, b))
    size, _ = _matrix("triangular_solve", a, square=True)
    inner = b.shape[-2 if left else -1]
    require(
        a.shape[:-2] == b.shape[:-2] and inner == size,
        f"prim.triangular_solve: a {a} and b {b} do not fit (left={left})",
    )
    return b


@primitive("decomposition")
def solve(a: TensorType, b: TensorType) -> TensorType:
    """X of ``a X = b`` for square ``a``, by LU with partial pivoting; not finite where a pivot is zero."""
    check_same_dtype("solve", (a, b))
    size, _ = _matrix("solve", a, square=True)
    require(
        len(b.shape) >= 2 and a.shape[:-2] == b.shape[:-2] and b.shape[-2] == size,
        f"prim.solve: a {a} and b {b} do not fit",
    )
    return b


def _mixes_matrix(rule: Primitive) -> None:
    def notation(*operands: TensorType, **attributes: object) -> AxisNotation:
        batch = [(f"b{i}",) for i in range(len(operands[0].shape) - 2)]
        results = rule.infer(operands, attributes)
        inner = [(f"m{i}",) for i in range(2)]
        terms = [batch + inner for _ in operands]
        shapes = [batch + inner[: len(r.shape) - len(batch)] for r in results if isinstance(r, TensorType)]
        return AxisNotation(terms, shapes, frozenset({"m0", "m1"}))

    rule.axes(notation)


_OPERATIONS: dict[Primitive, Callable[[float, float, float], float]] = {
    cholesky: lambda m, n, _: n**3 / 3,
    lu: lambda m, n, _: 2 * m * n * min(m, n) - (m + n) * min(m, n) ** 2 + 2 / 3 * min(m, n) ** 3,
    qr: lambda m, n, _: 4 * (m * n * min(m, n) - min(m, n) ** 3 / 3),
    svd: lambda m, n, _: 14 * m * n * min(m, n) + 8 * min(m, n) ** 3,
    eigh: lambda m, n, _: 9 * n**3,
    eig: lambda m, n, _: 25 * n**3,
    triangular_solve: lambda m, n, columns: n**2 * columns,
    solve: lambda m, n, columns: 2 / 3 * n**3 + 2 * n**2 * columns,
}
"""Operations by rows and columns of a matrix and columns of the right-hand side (Golub and Van Loan, "Matrix
computations", 2013)."""


def _count(rule: Primitive) -> None:
    def cost(made: Sequence[TensorType], *operands: TensorType, **_: object) -> Cost:
        *batch, rows, columns = operands[0].shape
        right = elements(operands[-1].shape) / max(1.0, elements((*batch, columns)))
        count = _OPERATIONS[rule](elements((rows,)), elements((columns,)), right)
        return cost_of_moving(operands, made, elements(batch) * count)

    rule.costs(cost)


for _rule in _OPERATIONS:
    _mixes_matrix(_rule)
    _count(_rule)

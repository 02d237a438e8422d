"""Linear algebra written with the decompositions: least squares, ranks, conditions, products of reflections."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil
from typing import Any

from numpy import triu_indices

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.extension import evaluator
from argosy_phi_ops.ops.common.arguments import Axes
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor


def _matrix(name: str, x: Tensor, square: bool = False) -> tuple[int, int]:
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(f"{name} takes {'square ' if square else ''}matrices, got shape {list(x.shape)}")
    return x.shape[-2], x.shape[-1]


def _adjoint(x: Tensor) -> Tensor:
    flipped = op("matrix_transpose")(x)
    return op("conj")(flipped) if x.dtype.kind == "c" else flipped


@compose(out=True, aliases={"A": "x", "ord": "p"})
def norm(
    x: Tensor,
    p: float | str | None = None,
    axis: Axes = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: object = None,
) -> Tensor:
    """The norm of vectors over ``axis``, or of matrices over two axes; of all elements by default."""
    result = op("norm")(x, p, axis, keepdim, dtype)
    return result if out is None else evaluator().deliver(op("norm"), result, out)


@compose(out=True, aliases={"ord": "p"})
def vector_norm(x: Tensor, p: float = 2.0, axis: Axes = None, keepdim: bool = False, *, dtype: object = None) -> Tensor:
    """The ``p``-norm of vectors over ``axis``, of all elements by default; computed in ``dtype`` if given."""
    return op("vector_norm")(x if dtype is None else x.astype(dtype), p, axis, keepdim)


@compose(aliases={"input": "x", "dim": "axis", "eps": "epsilon"}, out=True)
def normalize(x: Tensor, p: float = 2, axis: int = 1, epsilon: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``x`` divided by its p-norm along ``axis``, which counts as at least ``epsilon``; put in ``out`` if given."""
    result = op("normalize")(x, p, axis, epsilon)
    return result if out is None else evaluator().deliver(op("normalize"), result, out)


@compose()
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows i < j of ``x`` [n, m]: [n (n - 1) / 2].

    Raises ShapeError unless ``x`` has two axes.
    """
    if x.ndim != 2:
        raise ShapeError(f"pdist takes rows [n, m], got shape {list(x.shape)}")
    first, second = (Tensor(rows) for rows in triu_indices(x.shape[0], 1))
    return op("norm")(op("index_select")(x, first, 0) - op("index_select")(x, second, 0), p, -1)


@compose()
def cond(x: Tensor, p: float | str | None = None) -> Tensor:
    """The condition numbers ``norm(x) norm(inv(x))``, by default (and for 2 and -2) ratios of singular values; 0 of
    matrices without elements."""
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        raise OperatorError(f"cond: p {p!r} is none of None, 'fro', 'nuc', inf, -inf, 1, -1, 2 and -2")
    sizes = _matrix("cond", x, square=p not in (None, 2, -2))
    if 0 in sizes:
        return op("sum")(op("abs")(x), [-2, -1])
    if p in (None, 2, -2):
        values = op("svdvals")(x)
        largest, least = op("max")(values, -1), op("min")(values, -1)
        return least / largest if p == -2 else largest / least
    size = op("matrix_norm")
    return size(x, p) * size(op("inv")(x), p)


@compose()
def multi_dot(x: Sequence[Tensor]) -> Tensor:
    """The product of several matrices in the order that takes the fewest multiplications; the ends may be vectors."""
    if len(x) < 2:
        raise OperatorError(f"multi_dot takes two tensors or more, got {len(x)}")
    row, column = x[0].ndim == 1, x[-1].ndim == 1
    parts = list(x)
    if row:
        parts[0] = op("unsqueeze")(parts[0], 0)
    if column:
        parts[-1] = op("unsqueeze")(parts[-1], 1)
    for at, part in enumerate(parts):
        if part.ndim != 2 or (at and part.shape[0] != parts[at - 1].shape[1]):
            raise ShapeError(f"multi_dot: shapes {[list(v.shape) for v in x]} do not make a chain of matrices")
    sizes = [parts[0].shape[0], *(p.shape[1] for p in parts)]
    result = _chain(parts, sizes)
    return op("squeeze")(result, [i for i, drop in enumerate((row, column)) if drop]) if row or column else result


def _chain(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """The product by the cheapest bracketing (dynamic programming over the chain)."""

    @cache
    def cheapest_split(first: int, last: int) -> tuple[int, int]:
        if first == last:
            return 0, first
        cost = sizes[first] * sizes[last + 1]
        options = [
            (cheapest_split(first, k)[0] + cheapest_split(k + 1, last)[0] + cost * sizes[k + 1], k)
            for k in range(first, last)
        ]
        return min(options)

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return parts[first]
        cut = cheapest_split(first, last)[1]
        return op("matmul")(product(first, cut), product(cut + 1, last))

    return product(0, len(parts) - 1)


@compose()
def matrix_rank(x: Tensor, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values (eigenvalues in size, if ``hermitian``) exceed the tolerance, as int64.

    The tolerance is ``tol``, or the greater of ``atol`` and ``rtol`` times the largest value; by default the largest
    value times the larger of the two sizes times the precision of the dtype.
    """
    rows, columns = _matrix("matrix_rank", x, square=hermitian)
    if tol is not None and (atol is not None or rtol is not None):
        raise OperatorError("matrix_rank takes tol, or atol and rtol, not both")
    values = op("abs")(op("eigvalsh")(x)) if hermitian else op("svdvals")(x)
    largest = op("vector_norm")(values, float("inf"), -1)
    if tol is not None:
        limit: Any = tol
    else:
        precision = max(rows, columns) * finfo(x.dtype).eps if rtol is None and atol is None else rtol or 0.0
        limit = largest * precision
        if atol is not None:
            limit = op("maximum")(limit, atol if isinstance(atol, Tensor) else op("full_like")(limit, float(atol)))
    bound = op("unsqueeze")(limit, -1) if isinstance(limit, Tensor) else limit
    return op("sum")((values > bound).astype("int64"), -1)


@compose()
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The packed factors of ``P L U = x`` and the row exchanges (int32, counted from 1).

    get_infos: also, for each matrix, which pivot is the first that is zero (counted from 1; 0 for none).
    """
    if not pivot:
        raise NotImplementedError("lu without pivoting (pivot=False) is not implemented")
    _matrix("lu", x)
    packed, pivots = op("lu_factor")(x)
    return (packed, pivots, _first_zero_pivot(packed)) if get_infos else (packed, pivots)


def _first_zero_pivot(packed: Tensor) -> Tensor:
    if 0 in packed.shape:
        return op("zeros")(list(packed.shape[:-2]), "int32")
    zero = op("equal")(op("diagonal")(packed, 0, -2, -1), 0.0).astype("int32")
    return (op("argmax")(zero, -1, False, "int32") + 1) * zero.max(-1)


@compose()
def lu_unpack(
    x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """P, L and U from what :func:`lu` gives; None for what is not asked for."""
    rows, columns = _matrix("lu_unpack", x)
    lower = upper = order = None
    if unpack_ludata:
        least = min(rows, columns)
        unit = op("eye")(rows, least, dtype=x.dtype)
        lower = op("tril")(x[..., :, :least], -1) + unit
        upper = op("triu")(x[..., :least, :])
    if unpack_pivots:
        order = op("permutation_of")(y, rows, x.dtype)
    return order, lower, upper


@compose()
def lu_solve(b: Tensor, lu: Tensor, pivots: Tensor, trans: str = "N") -> Tensor:
    """The solution Z of ``A Z = b`` (``trans`` "T": of its transpose, "C": of its adjoint), given :func:`lu` of A."""
    if trans not in ("N", "T", "C"):
        raise OperatorError(f"lu_solve: trans {trans!r} is none of 'N', 'T' and 'C'")
    size, _ = _matrix("lu_solve", lu, square=True)
    order = op("permutation_of")(pivots, size, lu.dtype)
    solve, times = op("triangular_solve"), op("matmul")
    if trans == "N":
        first = solve(lu, times(op("matrix_transpose")(order), b), upper=False, unitriangular=True)
        return solve(lu, first, upper=True)
    flipped = _adjoint(lu) if trans == "C" else op("matrix_transpose")(lu)
    first = solve(flipped, b, upper=False)
    return times(order, solve(flipped, first, upper=True, unitriangular=True))


@compose()
def lstsq(x: Tensor, y: Tensor, rcond: float | None = None, driver: str | None = None) -> tuple[Tensor, ...]:
    """Least squares ``x Z = y``: the solution, the sums of squared residuals, the ranks and the singular values.

    By singular values, those below ``rcond`` (by default the larger size times the dtype's precision) times the
    largest taken as zero; ``driver`` ("gels", "gelsy", "gelsd", "gelss") says only which of the results are there.
    """
    chosen = driver or "gelsy"
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise OperatorError(f"lstsq: driver {driver!r} is none of 'gels', 'gelsy', 'gelsd' and 'gelss'")
    rows, columns = _matrix("lstsq", x)
    precision = finfo(x.dtype).eps * max(rows, columns) if rcond is None else rcond
    solution, residuals, ranks, values = op("least_squares")(x, y, precision)
    empty = op("zeros")([0], x.dtype)
    full = chosen != "gelsy" and rows > columns and bool(op("all")(ranks == columns))
    return (
        solution,
        residuals if full else empty,
        op("zeros")([0], "int64") if chosen == "gels" else ranks,
        values if chosen in ("gelsd", "gelss") else empty,
    )


def _reflect(x: Tensor, tau: Tensor, k: int, y: Tensor) -> Tensor:
    """``y - tau v v^H y`` for the k-th reflection, whose vector v stands below the diagonal of column k of ``x``."""
    rows = x.shape[-2]
    below = (op("arange")(rows) > k).astype(x.dtype)
    unit = (op("arange")(rows) == k).astype(x.dtype)
    v = op("unsqueeze")(x[..., :, k] * below + unit, -1)
    scale = op("unsqueeze")(tau[..., k : k + 1], -1)
    return y - scale * op("matmul")(v, op("matmul")(_adjoint(v), y))


@compose()
def householder_product(x: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of Householder reflections ``I - tau v v^H``, as ``geqrf`` leaves them."""
    rows, columns = _matrix("householder_product", x)
    if rows < columns or tau.shape[-1] > columns:
        raise ShapeError(f"householder_product: x {list(x.shape)} and tau {list(tau.shape)} do not fit")
    eye = op("eye")(rows, columns, dtype=x.dtype)
    result = op("broadcast_to")(eye, [*x.shape[:-2], rows, columns])
    for k in reversed(range(tau.shape[-1])):
        result = _reflect(x, tau, k, result)
    return result


@compose()
def ormqr(x: Tensor, tau: Tensor, y: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q y`` (``y Q`` unless ``left``, with Q adjoint if ``transpose``) for the reflections Q in ``x`` and ``tau``."""
    _matrix("ormqr", x)
    if not left:
        return _adjoint(ormqr(x, tau, _adjoint(y), True, not transpose))
    steps = range(tau.shape[-1])
    conjugate = op("conj")(tau) if transpose and tau.dtype.kind == "c" else tau
    for k in steps if transpose else reversed(steps):
        y = _reflect(x, conjugate, k, y)
    return y


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip

_RADIUS = 5.371920351148152
"""Up to this 1-norm the approximant of degree 13 is exact in float64."""

_SQUARINGS = 16


@compose()
def matrix_exp(x: Tensor) -> Tensor:
    """The exponentials of square matrices by scaling and squaring (Higham, 2005): Padé's approximant of degree 13.

    At most 16 squarings: 1-norms up to about 3.5e5. In double precision, then rounded to the dtype of ``x``. NaN for
    matrices that hold NaN or infinity.
    """
    size, _ = _matrix("matrix_exp", x, square=True)
    if x.dtype.kind not in "fc":
        x = x.astype("float32")
    wide = "complex128" if x.dtype.kind == "c" else "float64"
    if x.dtype.name != wide:
        return matrix_exp(x.astype(wide)).astype(x.dtype)
    if not size:
        return x
    norms = op("max")(op("sum")(op("abs")(x.detach()), -2, keepdim=True), -1, keepdim=True)
    finite = op("isfinite")(norms)
    x, norms = op("where")(finite, x, 0.0), op("where")(finite, norms, 0.0)
    steps = op("clip")(op("ceil")(op("log2")(op("maximum")(norms, 1e-30) / _RADIUS)), 0.0, float(_SQUARINGS))
    result = _pade(x * op("pow")(2.0 * op("ones_like")(steps), -steps).astype(x.dtype), size)
    for k in range(_squaring_count(steps)):
        result = op("where")(steps > float(k), op("matmul")(result, result), result)
    return op("where")(finite, result, float("nan"))


def _squaring_count(steps: Tensor) -> int:
    """How many squarings any matrix needs; while capturing, where no value is known, all that are allowed."""
    return _SQUARINGS if steps.payload.is_traced else ceil(float(op("max")(steps)))


def _pade(x: Tensor, size: int) -> Tensor:
    times, eye = op("matmul"), op("eye")(size, dtype=x.dtype)
    two = times(x, x)
    four = times(two, two)
    six = times(two, four)
    b = _PADE
    odd = times(six, six * b[13] + four * b[11] + two * b[9]) + six * b[7] + four * b[5] + two * b[3] + eye * b[1]
    odd = times(x, odd)
    even = times(six, six * b[12] + four * b[10] + two * b[8]) + six * b[6] + four * b[4] + two * b[2] + eye * b[0]
    return op("solve")(even - odd, even + odd)


@compose()
def svd_lowrank(
    x: Tensor, q: int | None = None, niter: int = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """About the ``q`` (6) largest singular triples U, S, V of ``x`` (minus ``M``), by a random subspace.

    Halko, Martinsson and Tropp (2009), algorithms 4.4 and 5.1, with ``niter`` power iterations.
    """
    rows, columns = _matrix("svd_lowrank", x)
    count = min(6, rows, columns) if q is None else q
    if not 0 < count <= min(rows, columns):
        raise OperatorError(f"svd_lowrank: q {q} should lie between 1 and the smaller size of {list(x.shape)}")
    matrix = x if M is None else x - M
    wide = rows < columns
    tall = _adjoint(matrix) if wide else matrix
    basis = _range(tall, count, niter)
    u, s, vh = op("svd")(op("matmul")(_adjoint(basis), tall))
    left, right = op("matmul")(basis, u), _adjoint(vh)
    return (right, s, left) if wide else (left, s, right)


def _range(x: Tensor, count: int, niter: int) -> Tensor:
    """An orthonormal basis of about the range of tall matrices."""
    times = op("matmul")
    start = op("randn")([x.shape[-1], count], str(x.dtype.name) if x.dtype.kind == "f" else "float32")
    q = op("qr")(times(x, start.astype(x.dtype)))[0]
    for _ in range(niter):
        q = op("qr")(times(_adjoint(x), q))[0]
        q = op("qr")(times(x, q))[0]
    return q


@compose()
def pca_lowrank(x: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """About the first ``q`` (6) principal components of the rows of ``x``: U, S, V of the centred matrix."""
    rows, columns = _matrix("pca_lowrank", x)
    count = min(6, rows, columns) if q is None else q
    mean = op("mean")(x, -2, keepdim=True) if center else None
    return svd_lowrank(x, count, niter, mean)

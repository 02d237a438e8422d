"""Derivatives of matrix decompositions, by differentiating their defining equations.

Only tangents are written down (but for solves, which they are made of). Each is linear in the
tangent of the matrix and made of primitives, so the cotangent rule is its transpose, taken by reverse mode
itself. Sources: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with
application in optimum experimental design" (2010) for QR; Boeddeker et al., arXiv:1701.00392, for complex
eigenvectors. Singular values, and eigenvalues, are taken to be distinct.
"""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import (
    Value,
    adjoint,
    conj,
    is_complex,
    matmul,
    plus,
    swap_last,
    where,
    zeros,
    zeros_like,
)
from argosy_autograd.errors import MissingRule
from argosy_autograd.registry import jvp, vjp
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_phi_ops.pivots import zero_pivots

# Triangles and diagonals of the last two axes


def _row(x: Value) -> Value:
    return prim.iota(shape=x.shape, axis=x.ndim - 2, dtype="int64")


def _column(x: Value) -> Value:
    return prim.iota(shape=x.shape, axis=x.ndim - 1, dtype="int64")


def _strict_lower_triangle(x: Value) -> Value:
    """The part strictly below the diagonal."""
    return where(prim.gt(_row(x), _column(x)), x, 0)


def _upper_triangle(x: Value) -> Value:
    """The part on and above the diagonal."""
    return where(prim.le(_row(x), _column(x)), x, 0)


def _on_diagonal(x: Value) -> Value:
    return prim.eq(_row(x), _column(x))


def _diagonal(x: Value) -> Value:
    """The diagonal of square matrices [..., n, n] as [..., n]."""
    return prim.reduce_sum(where(_on_diagonal(x), x, 0), axes=(x.ndim - 1,))


def _hermitian(x: Value) -> Value:
    return (x + adjoint(x)) * 0.5


def _as_columns(v: Value, like: Value) -> Value:
    """[..., n] repeated down the rows of [..., m, n]."""
    return prim.broadcast(v, shape=like.shape, axes=(*range(v.ndim - 1), v.ndim))


def _as_rows(v: Value, like: Value) -> Value:
    """[..., m] repeated along the columns of [..., m, n]."""
    return prim.broadcast(v, shape=like.shape, axes=tuple(range(v.ndim)))


def _reciprocal_gaps(values: Value, like: Value) -> Value:
    """1 / (values_j - values_i) off the diagonal, zero on it."""
    gaps = _as_columns(values, like) - _as_rows(values, like)
    same = _on_diagonal(like)
    return where(same, 0, 1 / where(same, 1, gaps))


def _widen(x: Value, like: Value) -> Value:
    """A real tensor as one of the dtype of ``like``."""
    return x if x.dtype == like.dtype else prim.cast(x, dtype=like.dtype)


def _solve(a: Value, b: Value, *, lower: bool, left: bool = True, adjoint: bool = False, unit: bool = False) -> Value:
    return prim.triangular_solve(
        a, b, lower=lower, left=left, unit=unit, transpose=adjoint, conjugate=adjoint and is_complex(a)
    )


# The rules


@jvp("cholesky")
def _(low: Value, x: Value, dx: Value) -> Value:
    inner = _solve(low, _hermitian(dx), lower=True)
    inner = _solve(low, inner, lower=True, left=False, adjoint=True)
    return matmul(low, _strict_lower_triangle(inner) + where(_on_diagonal(inner), inner * 0.5, 0))


@jvp("triangular_solve")
def _(
    y: Value,
    a: Value,
    b: Value,
    da: Value | None,
    db: Value | None,
    *,
    lower: bool,
    transpose: bool,
    conjugate: bool,
    unit: bool,
    left: bool,
) -> Value:
    right_side = db
    if da is not None:
        part = _read_part(da, lower, unit)
        part = swap_last(part) if transpose else part
        part = conj(part) if conjugate else part
        moved = matmul(part, y) if left else matmul(y, part)
        right_side = -moved if right_side is None else right_side - moved
    assert right_side is not None
    return prim.triangular_solve(
        a, right_side, lower=lower, transpose=transpose, conjugate=conjugate, unit=unit, left=left
    )


@vjp("triangular_solve")
def _(
    g: Value,
    y: Value,
    a: Value,
    b: Value,
    *,
    lower: bool,
    transpose: bool,
    conjugate: bool,
    unit: bool,
    left: bool,
) -> tuple[Value, Value]:
    back = {"transpose": not transpose, "conjugate": not conjugate if is_complex(a) else False}
    gb = prim.triangular_solve(a, g, lower=lower, unit=unit, left=left, **back)
    part = -(matmul(gb, adjoint(y)) if left else matmul(adjoint(y), gb))
    part = swap_last(part) if transpose else part
    part = conj(part) if conjugate else part
    return _read_part(part, lower, unit), gb


def _read_part(x: Value, lower: bool, unit: bool) -> Value:
    """The triangle that a solve reads: without the diagonal when that is taken as ones."""
    compare = {(True, True): prim.gt, (True, False): prim.ge, (False, True): prim.lt, (False, False): prim.le}
    return where(compare[lower, unit](_row(x), _column(x)), x, 0)


@jvp("lu")
def _(results: tuple[Value, Value, Value], x: Value, dx: Value) -> tuple[Value, None, None]:
    packed, _, order = results
    rows, columns = x.shape[-2:]
    low, up = _square_factors(packed, rows, columns)
    filled = zero_pivots(_diagonal(up))
    up = up + where(_on_diagonal(up), _as_rows(filled, up), 0)
    inner = _solve(low, matmul(_permutation(order, x), dx), lower=True, unit=True)
    inner = _solve(up, inner, lower=False, left=False)
    unit_low = where(_on_diagonal(low), 1, _strict_lower_triangle(low))
    return (
        matmul(unit_low, _strict_lower_triangle(inner)) + matmul(_upper_triangle(inner), _upper_triangle(up)),
        None,
        None,
    )


def _square_factors(packed: Value, rows: Any, columns: Any) -> tuple[Value, Value]:
    """Square matrices whose triangles are the factors, continued by the identity."""
    if rows == columns:
        return packed, packed
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise MissingRule(f"the derivative of lu of a matrix [{rows}, {columns}] of symbolic size that is not square")
    size, batch = min(rows, columns), packed.shape[:-2]
    corner = prim.slice(packed, start=(0,) * packed.ndim, limit=(*batch, size, size), stride=(1,) * packed.ndim)
    low = packed if rows > columns else corner
    up = packed if columns > rows else corner
    return _continue(low, rows), _continue(up, columns)


def _continue(x: Value, size: int) -> Value:
    missing = [size - n for n in x.shape[-2:]]
    if not any(missing):
        return x
    none = (0,) * x.ndim
    full = prim.pad(x, prim.constant(0, x.dtype), low=none, high=(*none[2:], *missing), interior=none)
    new = prim.logical_and(_on_diagonal(full), prim.ge(_row(full), min(x.shape[-2:])))
    return where(new, 1, full)


def _permutation(order: Value, x: Value) -> Value:
    """The matrix P, [..., m, m], that puts rows in this order."""
    shape = (*x.shape[:-1], x.shape[-2])
    spread = prim.broadcast(order, shape=shape, axes=tuple(range(order.ndim)))
    return prim.cast(prim.eq(spread, prim.iota(shape=shape, axis=len(shape) - 1, dtype="int32")), dtype=x.dtype)


@jvp("solve")
def _(y: Value, a: Value, b: Value, da: Value | None, db: Value | None) -> Value:
    right_side = plus(db, None if da is None else -matmul(da, y))
    return prim.solve(a, right_side)


@vjp("solve")
def _(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    gb = prim.solve(adjoint(a), g)
    return -matmul(gb, adjoint(y)), gb


@jvp("qr")
def _(results: tuple[Value, Value], x: Value, dx: Value, *, full: bool) -> tuple[Value, Value]:
    q, r = results
    rows, columns = x.shape[-2:]
    if rows == columns or (isinstance(rows, int) and isinstance(columns, int) and rows > columns):
        if full and rows != columns:
            raise MissingRule(
                f"qr with full=True of a tall matrix {x.type}: its last columns are not unique; use full=False"
            )
        return _tall_qr(q, r, dx)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise MissingRule(f"the derivative of qr of a matrix {x.type} of symbolic size that is not square")
    left, right = (_columns(dx, a, b) for a, b in ((0, rows), (rows, columns)))
    dq, du = _tall_qr(q, _columns(r, 0, rows), left)
    dv = matmul(adjoint(q), right - matmul(dq, _columns(r, rows, columns)))
    return dq, prim.concat(du, dv, axis=x.ndim - 1)


def _columns(x: Value, start: Any, end: Any) -> Value:
    none = (0,) * (x.ndim - 1)
    return prim.slice(x, start=(*none, start), limit=(*x.shape[:-1], end), stride=(1,) * x.ndim)


def _tall_qr(q: Value, r: Value, dx: Value) -> tuple[Value, Value]:
    scaled = _solve(r, dx, lower=False, left=False)
    inner = matmul(adjoint(q), scaled)
    turn = _strict_lower_triangle(inner) - adjoint(_strict_lower_triangle(inner))
    if is_complex(inner):
        turn = turn + where(_on_diagonal(inner), prim.complex(_real_zeros(inner), prim.imag(inner)), 0)
    return matmul(q, turn - inner) + scaled, matmul(inner - turn, r)


def _real_zeros(x: Value) -> Value:
    return zeros(x.shape, "float32" if x.dtype == "complex64" else "float64")


@jvp("eigh")
def _(results: tuple[Value, Value], x: Value, dx: Value, *, lower: bool) -> tuple[Value, Value]:
    values, vectors = results
    inner = matmul(adjoint(vectors), matmul(_hermitian(dx), vectors))
    moved = _diagonal(inner)
    gaps = _reciprocal_gaps(values, _type_template(values, inner))
    return (
        prim.real(moved) if is_complex(moved) else moved,
        matmul(vectors, inner * _widen(gaps, inner)),
    )


def _type_template(values: Value, like: Value) -> Value:
    """Any tensor of the shape of ``like`` and the dtype of ``values``: only its type is read."""
    return zeros(like.shape, values.dtype)


@jvp("svd")
def _(results: tuple[Value, Value, Value], x: Value, dx: Value, *, full: bool) -> tuple[Value, Value, Value]:
    u, s, vh = results
    rows, columns = x.shape[-2:]
    if full and rows != columns:
        raise MissingRule(f"svd with full=True of {x.type}: its last singular vectors are not unique; use full=False")
    v = adjoint(vh)
    inner = matmul(adjoint(u), matmul(dx, v))
    like = _type_template(s, inner)
    squared = _reciprocal_gaps(s * s, like)
    gaps, by_column, by_row = (_widen(m, inner) for m in (squared, _as_columns(s, like), _as_rows(s, like)))
    by_u, by_v = by_column * inner, by_row * inner
    du = gaps * (by_u + adjoint(by_u))
    if is_complex(inner):
        du = du + where(_on_diagonal(inner), (inner - adjoint(inner)) * 0.5 / by_column, 0)
    moved = _diagonal(inner)
    d_u = matmul(u, du) + _orthogonal_part(u, dx, v, s, rows != s.shape[-1])
    d_v = matmul(v, gaps * (by_v + adjoint(by_v))) + _orthogonal_part(v, adjoint(dx), u, s, columns != s.shape[-1])
    return d_u, prim.real(moved) if is_complex(moved) else moved, adjoint(d_v)


def _orthogonal_part(u: Value, dx: Value, v: Value, s: Value, needed: bool) -> Value:
    """(I - u u^H) dx v / s: how the span of u turns out of itself; zero when u is square."""
    if not needed:
        return zeros_like(u)
    moved = matmul(dx, v)
    moved = moved / _widen(_as_columns(s, _type_template(s, moved)), moved)
    return moved - matmul(u, matmul(adjoint(u), moved))


@jvp("eig")
def _(results: tuple[Value, Value], x: Value, dx: Value) -> tuple[Value, Value]:
    values, vectors = results
    inner = prim.solve(vectors, matmul(_widen(dx, vectors), vectors))
    moved = matmul(vectors, inner * _reciprocal_gaps(values, inner))
    along = prim.real(_diagonal(matmul(adjoint(vectors), moved)))  # keeps the vectors at length one
    return _diagonal(inner), moved - vectors * _as_columns(_widen(along, vectors), vectors)


def _transpose(name: str) -> None:
    """The cotangent rule of a primitive as the transpose of its tangent rule at placeholders."""

    def rule(g: Any, result: Any, *operands: Value, **attributes: Any) -> tuple[Value | None, ...]:
        builder = context().builder
        assert builder is not None
        placeholders = [zeros_like(x) for x in operands]
        tangents = jvp.find(name)(result, *operands, *placeholders, **attributes)
        if not isinstance(tangents, tuple):
            g, tangents = (g,), (tangents,)
        pairs = [(t, h) for t, h in zip(tangents, g, strict=True) if t is not None and h is not None]
        return tuple(vjp_values([t for t, _ in pairs], [h for _, h in pairs], placeholders, builder))

    vjp.add(name, rule)


for _name in ("cholesky", "lu", "qr", "svd", "eigh", "eig"):
    _transpose(_name)

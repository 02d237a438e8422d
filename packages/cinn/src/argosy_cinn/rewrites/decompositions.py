"""Decompositions of matrices as loops of primitives, for devices that call no library.

A step eliminates one column of all matrices of a stack at once: Cholesky factors by outer products, LU with partial
pivoting, QR by Householder reflections with LAPACK's signs, and substitution (Golub and Van Loan, "Matrix
computations", 2013, chapters 3 to 5); singular values by rotations (see `jacobi`), whose vectors differ from LAPACK's
by their phases. Matrices that LAPACK refuses have results that are not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from argosy_cinn.rewrites.jacobi import MOST_COLUMNS, conjugate, orthogonalise, real_part
from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.ops.common.loops import scan
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["ExpandDecompositions", "calls_library"]


@register_pass("expand-decompositions")
@dataclass(frozen=True)
class ExpandDecompositions(Pass):
    """Rewrites decompositions and solutions of known sizes as loops; eigenvalues of what is not symmetric stay, and
    large matrices whose singular values are wanted."""

    def run(self, program: Program) -> bool:
        """Rewrite all blocks; True where anything changed."""
        found = [op for op in program.walk() if op.name in _RULES and _is_known(op)]
        for op in found:
            with emit_at(Builder.before(op)):
                stacks = [_as_stack(v) for v in op.operands]
                made = _RULES[op.name](op, *stacks)
                op.replace_with([prim.reshape(m, shape=sizes(r)) for m, r in zip(made, op.results, strict=True)])
        return bool(found)


def calls_library(program: Program) -> bool:
    """Whether there is something to expand."""
    return any(op.name in _RULES for op in program.walk())


def _is_known(op: Operation) -> bool:
    types = [v.type for v in (*op.operands, *op.results)]
    if not all(isinstance(type, TensorType) and type.is_static and 0 not in type.shape for type in types):
        return False
    return op.name not in ("prim.svd", "prim.eigh") or min(sizes(op.operand(0))[-2:]) <= MOST_COLUMNS


def _as_stack(x: Value) -> Value:
    *batch, rows, columns = sizes(x)
    return prim.reshape(x, shape=(prod(batch), rows, columns))  # type: ignore[no-any-return]


# -- parts of stacks of matrices [batch, rows, columns]


def _part(x: Value, row: Value | None, column: Value | None) -> Value:
    """A row, a column or an element of each matrix, with axes of size one."""
    zero = prim.constant(0, "int64")
    batch, rows, columns = sizes(x)
    extents = (batch, rows if row is None else 1, columns if column is None else 1)
    return prim.dynamic_slice(x, zero, row or zero, column or zero, sizes=extents)  # type: ignore[no-any-return]


def _numbers(x: Value, axis: int) -> Value:
    """The numbers of rows (axis 1) or columns (axis 2)."""
    return prim.iota(shape=tuple(n if i == axis else 1 for i, n in enumerate(sizes(x))), axis=axis, dtype="int64")  # type: ignore[no-any-return]


def _where(condition: Value, x: Value, other: float = 0.0) -> Value:
    return prim.select(condition, x, prim.cast(prim.constant(other, "float32"), dtype=x.dtype))  # type: ignore[no-any-return]


def _adjoint(x: Value) -> Value:
    return conjugate(prim.transpose(x, permutation=(0, 2, 1)))


def _as_dtype(x: Value, like: Value) -> Value:
    return prim.cast(x, dtype=like.dtype) if x.dtype != like.dtype else x


def _take_rows(x: Value, order: Value) -> Value:
    """Rows of ``x`` [batch, rows, ...] in the ``order`` [batch, rows]."""
    return prim.gather(x, prim.reshape(order, shape=(*sizes(order), 1)), axes=(1,), batch=1)  # type: ignore[no-any-return]


def _steps(count: int) -> Value:
    return prim.iota(shape=(count,), axis=0, dtype="int64")  # type: ignore[no-any-return]


def _flat(x: Value) -> Value:
    """A row or column of each matrix as [batch, n]."""
    return prim.reshape(x, shape=(sizes(x)[0], prod(sizes(x)[1:])))  # type: ignore[no-any-return]


# -- decompositions


def _cholesky(op: Operation, x: Value) -> Sequence[Value]:
    rows = _numbers(x, 1)

    def step(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        (k,), (left,) = slices, carried
        root = _as_dtype(prim.sqrt(real_part(_part(left, k, k))), x)
        below = _where(prim.gt(rows, k), prim.div(_part(left, None, k), root))
        column = prim.select(prim.eq(rows, k), root, below)
        return [_flat(column)], [prim.sub(left, prim.mul(column, _adjoint(column)))]

    (columns,), _ = scan(step, [_steps(sizes(x)[1])], [x])
    return [prim.transpose(columns, permutation=(1, 2, 0))]


def _lu(op: Operation, x: Value) -> Sequence[Value]:
    batch, rows, columns = sizes(x)
    row, column = _numbers(x, 1), _numbers(x, 2)
    number = prim.iota(shape=(batch, rows), axis=1, dtype="int64")

    def step(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        (k,), (packed, order) = slices, carried
        heads = _part(packed, None, k)
        size = (
            prim.add(prim.abs(prim.real(heads)), prim.abs(prim.imag(heads))) if x.dtype in COMPLEX else prim.abs(heads)
        )
        pivot = prim.argmax(_flat(_where(prim.ge(row, k), size, -1.0)), axis=1, dtype="int64")
        other = prim.reshape(pivot, shape=(batch, 1))
        exchanged = prim.select(prim.eq(number, k), other, prim.select(prim.eq(number, other), k, number))
        packed, order = _take_rows(packed, exchanged), _take_rows(order, exchanged)
        head = _part(packed, k, k)
        none = prim.eq(head, _where(prim.constant(False, "bool"), head))
        quotient = _where(
            prim.logical_not(none), prim.div(_part(packed, None, k), _where(prim.logical_not(none), head, 1.0))
        )
        factors = _where(prim.gt(row, k), quotient)
        packed = prim.sub(packed, prim.mul(factors, _where(prim.gt(column, k), _part(packed, k, None))))
        inside = prim.logical_and(prim.gt(row, k), prim.eq(column, k))
        return [pivot], [prim.select(inside, factors, packed), order]

    (pivots,), (packed, order) = scan(step, [_steps(min(rows, columns))], [x, number])
    pivots = prim.cast(prim.transpose(pivots, permutation=(1, 0)), dtype="int32")
    return [packed, pivots, prim.cast(order, dtype="int32")]


def _qr(op: Operation, x: Value) -> Sequence[Value]:
    batch, rows, columns = sizes(x)
    inner = rows if op.attributes["full"] else min(rows, columns)
    row = _numbers(x, 1)

    def reflect(v: Value, factor: Value, y: Value) -> Value:
        """``(1 - factor v v^H) y``."""
        product = prim.reduce_sum(prim.mul(conjugate(v), y), axes=(1,))
        product = prim.reshape(product, shape=(batch, 1, sizes(y)[2]))
        return prim.sub(y, prim.mul(prim.mul(v, factor), product))  # type: ignore[no-any-return]

    def step(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        (k,), (left,) = slices, carried
        head, below = _part(left, k, k), _where(prim.gt(row, k), _part(left, None, k))
        size = prim.abs(below)
        rest = prim.reshape(prim.reduce_sum(prim.mul(size, size), axes=(1,)), shape=(batch, 1, 1))
        length = prim.sqrt(prim.add(rest, prim.mul(prim.abs(head), prim.abs(head))))
        beta = prim.select(prim.lt(real_part(head), 0.0), length, prim.neg(length))
        done = prim.eq(rest, 0.0)
        if x.dtype in COMPLEX:
            done = prim.logical_and(done, prim.eq(prim.imag(head), 0.0))
        going = prim.logical_not(done)
        divisor = _where(going, prim.sub(head, _as_dtype(beta, x)), 1.0)
        v = prim.add(prim.div(below, divisor), _as_dtype(prim.eq(row, k), x))
        target = _as_dtype(_where(going, beta, 1.0), x)
        tau = _where(going, prim.div(prim.sub(target, head), target))
        return [_flat(v), _flat(tau)], [reflect(v, conjugate(tau), left)]

    (vectors, factors), (left,) = scan(step, [_steps(min(rows, columns))], [x])
    upper = _where(prim.le(row, _numbers(x, 2)), left)
    upper = prim.slice(upper, start=(0, 0, 0), limit=(batch, inner, columns), stride=(1, 1, 1))

    def back(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        (v, factor), (q,) = slices, carried
        return [], [reflect(prim.reshape(v, shape=(batch, rows, 1)), prim.reshape(factor, shape=(batch, 1, 1)), q)]

    shape = (batch, rows, inner)
    numbers = (prim.iota(shape=shape, axis=axis, dtype="int64") for axis in (1, 2))
    _, (q,) = scan(back, [vectors, factors], [_as_dtype(prim.eq(*numbers), x)], reverse=True)
    return [q, upper]


def _substitute(a: Value, b: Value, lower: bool, unit: bool) -> Value:
    """The x of ``a x = b`` for triangular matrices, row after row."""
    row, size = _numbers(a, 1), sizes(a)[1]

    def step(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        (k,), (left,) = slices, carried
        x = _part(left, k, None)
        x = x if unit else prim.div(x, _part(a, k, k))
        column = _where(prim.gt(row, k) if lower else prim.lt(row, k), _part(a, None, k))
        return [_flat(x)], [prim.sub(left, prim.mul(column, x))]

    (rows,), _ = scan(step, [_steps(size)], [b], reverse=not lower)
    return prim.transpose(rows, permutation=(1, 0, 2))  # type: ignore[no-any-return]


def _triangular_solve(op: Operation, a: Value, b: Value) -> Sequence[Value]:
    given, lower, left = op.attributes, op.attributes["lower"], op.attributes["left"]
    matrix = conjugate(a) if given["conjugate"] else a
    if given["transpose"] == left:  # solving from the right transposes once more
        matrix, lower = prim.transpose(matrix, permutation=(0, 2, 1)), not lower
    if left:
        return [_substitute(matrix, b, lower, given["unit"])]
    turned = _substitute(matrix, prim.transpose(b, permutation=(0, 2, 1)), lower, given["unit"])
    return [prim.transpose(turned, permutation=(0, 2, 1))]


def _solve(op: Operation, a: Value, b: Value) -> Sequence[Value]:
    packed, _, order = _lu(op, a)
    return [_substitute(packed, _substitute(packed, _take_rows(b, order), True, True), False, False)]


def _singular_values(op: Operation, x: Value) -> Sequence[Value]:
    batch, rows, columns = sizes(x)
    if rows < columns:
        u, s, vh = _singular_values(op, _adjoint(x))
        return [_adjoint(vh), s, _adjoint(u)]
    x, largest = _normalise(x)
    scaled, v = orthogonalise(x)
    size = prim.abs(scaled)
    s = prim.sqrt(prim.reduce_sum(prim.mul(size, size), axes=(2,)))
    order = _order(s, True)
    scaled, v = (_take_rows(y, order) for y in (scaled, v))
    s = _flat(_take_rows(prim.reshape(s, shape=(batch, columns, 1)), order))
    u, upper = _qr(op, prim.transpose(scaled, permutation=(0, 2, 1)))
    diagonal = prim.reduce_sum(_where(prim.eq(_numbers(upper, 1), _numbers(upper, 2)), upper), axes=(1,))
    length = prim.abs(diagonal)
    some = prim.gt(length, 0.0)
    sign = _where(some, prim.div(diagonal, _as_dtype(_where(some, length, 1.0), x)), 1.0)
    width = sizes(u)[2]
    if width > columns:
        one = prim.cast(prim.constant(1.0, "float32"), dtype=x.dtype)
        sign = prim.pad(sign, one, low=(0, 0), high=(0, width - columns), interior=(0, 0))
    s = prim.mul(s, prim.reshape(largest, shape=(batch, 1)))
    return [prim.mul(u, prim.reshape(sign, shape=(batch, 1, width))), s, conjugate(v)]


def _normalise(x: Value) -> tuple[Value, Value]:
    """Matrices over their largest sizes, so that no square is infinite or lost, and those sizes [batch, 1, 1]: 1 of
    zeros."""
    largest = prim.reshape(prim.reduce_max(prim.abs(x), axes=(1, 2)), shape=(sizes(x)[0], 1, 1))
    largest = _where(prim.gt(largest, 0.0), largest, 1.0)
    return prim.div(x, _as_dtype(largest, x)), largest


def _order(x: Value, descending: bool) -> Value:
    """The numbers [batch, n] of elements in order."""
    numbers = prim.iota(shape=sizes(x), axis=1, dtype="int64")
    return prim.sort(x, numbers, axis=1, descending=descending)[1]  # type: ignore[no-any-return]


def _eigenvalues(op: Operation, x: Value) -> Sequence[Value]:
    """Of what is positive definite singular values are eigenvalues: a multiple of the identity is added before."""
    batch, n, _ = sizes(x)
    row, column = _numbers(x, 1), _numbers(x, 2)
    inside = prim.gt(row, column) if op.attributes["lower"] else prim.lt(row, column)
    triangle, diagonal = _where(inside, x), _where(prim.eq(row, column), _as_dtype(real_part(x), x))
    whole, largest = _normalise(prim.add(prim.add(triangle, _adjoint(triangle)), diagonal))
    size = prim.abs(whole)
    norm = prim.reshape(prim.sqrt(prim.reduce_sum(prim.mul(size, size), axes=(1, 2))), shape=(batch, 1, 1))
    shift = _as_dtype(prim.add(norm, norm), x)
    _, v = orthogonalise(prim.add(whole, _where(prim.eq(row, column), shift)))
    product = prim.dot_general(v, whole, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))
    values = real_part(prim.reduce_sum(prim.mul(conjugate(v), product), axes=(2,)))
    order = _order(values, False)
    values = _flat(_take_rows(prim.reshape(values, shape=(batch, n, 1)), order))
    values = prim.mul(values, prim.reshape(largest, shape=(batch, 1)))
    return [values, prim.transpose(_take_rows(v, order), permutation=(0, 2, 1))]


_RULES: Mapping[str, Callable[..., Sequence[Value]]] = {
    "prim.cholesky": _cholesky, "prim.lu": _lu, "prim.qr": _qr, "prim.triangular_solve": _triangular_solve,
    "prim.solve": _solve, "prim.svd": _singular_values, "prim.eigh": _eigenvalues,
}  # fmt: skip

"""Products of matrices."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


@onnx_operator("MatMul")
def matmul(x: Any, y: Any) -> Any:
    """The product by numpy's rule."""
    return phi.matmul(x, y)


@onnx_operator("Gemm")
def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 1, transA: int = 0,
    transB: int = 0,
) -> Any:  # fmt: skip
    """``alpha a b + beta c``, either matrix transposed where asked."""
    product = prim.dot_general(a, b, lhs_contract=(0 if transA else 1,), rhs_contract=(1 if transB else 0,))
    if alpha != 1.0:
        product = product * alpha
    return product if c is None else prim.add(product, c if beta == 1.0 else c * beta)


@onnx_operator("Einsum")
def einsum(*xs: Any, equation: str) -> Any:
    """Sums of products by an equation."""
    return phi.einsum(equation.replace(" ", ""), *xs)


@onnx_operator("Det")
def det(x: Any) -> Any:
    """Determinants of matrices."""
    return phi.det(x)


@onnx_operator("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
    """The product of integers of 8 bits less their zero points, in int32. Rows of ``a`` may have one each."""
    return phi.matmul(centred(a, a_zero_point, -2), centred(b, b_zero_point, -1))


def centred(x: Any, zero_point: Any, axis: int) -> Any:
    """``x`` less its zero point in int32; several zero points lie along ``axis``."""
    whole = prim.cast(x, dtype="int32")
    if zero_point is None:
        return whole
    point = prim.cast(zero_point, dtype="int32")
    sizes = shape_of(point)
    if len(sizes) == 1 and sizes[0] != 1:
        along = [1] * len(shape_of(x))
        along[axis] = sizes[0]
        point = phi.reshape(point, along)
    elif len(sizes) == 1:
        point = phi.reshape(point, [])
    return prim.sub(whole, point)

"""Linear maps, embeddings and attention."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    yield from _matmul()
    yield from _linear()
    yield from _embedding()
    yield from _attention()


def _matmul() -> Iterator[Case]:
    shapes = (
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
        ((2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((4, 1, 2, 3), (5, 3, 2)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
        ((5, 2, 3), (3,)), ((2, 3), (2, 3)), ((), (3,)), ((3,), (5, 3, 4)), ((1, 1), (1, 1)),
    )  # fmt: skip
    for x, y in shapes:
        yield call("matmul", t(*x), t(*y))
    for dtype in ("float64", "int32", "int64", "complex64"):
        yield call("matmul", t(2, 3, dtype=dtype), t(3, 2, dtype=dtype))
    yield call("matmul", t(3, 2), t(3, 4), True)
    yield call("matmul", t(2, 3), t(4, 3), False, True)
    yield call("matmul", t(5, 3, 2), t(5, 4, 3), transpose_x=True, transpose_y=True)
    yield call("matmul", t(2, 3, layout="T"), t(3, 4, layout="step"))
    yield call("matmul", t(2, 3), t(3, 4, dtype="float64"))
    yield call("matmul", t(3, dtype="complex64"), t(3, 2))


def _linear() -> Iterator[Case]:
    for shape in ((2, 3), (3,), (2, 4, 3), (0, 3)):
        yield call(F + "linear", t(*shape), t(3, 5))
        yield call(F + "linear", t(*shape), t(3, 5), t(5))
    yield call(F + "linear", t(2, 3, dtype="float64"), t(3, 5, dtype="float64"), bias=t(5, dtype="float64"))
    yield call(F + "linear", t(2, 3), t(4, 5))
    yield call(F + "bilinear", t(2, 3), t(2, 4), t(5, 3, 4))
    yield call(F + "bilinear", t(2, 3), t(2, 4), t(5, 3, 4), t(1, 5))
    for args in ((), (0,), (-1,), (1, 0.5)):
        yield call(F + "cosine_similarity", t(3, 4), t(3, 4), *args)
    yield call(F + "cosine_similarity", t(2, 3, 4), t(3, 4), axis=-1)


def _embedding() -> Iterator[Case]:
    ids = t(2, 3, dtype="int64", low=0, high=5)
    yield call(F + "embedding", ids, t(5, 4))
    yield call(F + "embedding", t(3, dtype="int32", low=0, high=5), t(5, 4, dtype="float64"))
    yield call(F + "embedding", given([[0, 1, 4]], "int64"), t(5, 4), padding_idx=1)
    yield call(F + "embedding", given([[0, 1, 4]], "int64"), t(5, 4), padding_idx=-1)
    yield call(F + "embedding", given([[0, 1, 1], [4, 1, 3]], "int64"), t(5, 4), padding_idx=3, scale_grad_by_freq=True)
    yield call(F + "embedding", given([[0, 1, 1], [4, 1, 3]], "int64"), t(5, 4), max_norm=1.0, norm_type=3.0)
    yield call(F + "embedding", t(dtype="int64", low=0, high=5), t(5, 4))
    yield call(F + "embedding", t(0, dtype="int64"), t(5, 4))
    yield call(F + "embedding", given([7], "int64"), t(5, 4))


def _attention() -> Iterator[Case]:
    sdpa = F + "scaled_dot_product_attention"
    q = t(2, 3, 2, 4)
    yield call(sdpa, q, t(2, 5, 2, 4), t(2, 5, 2, 4))
    yield call(sdpa, q, q, q, is_causal=True)
    yield call(sdpa, q, t(2, 5, 2, 4), t(2, 5, 2, 4), attn_mask=t(2, 2, 3, 5, grad=False))
    yield call(sdpa, q, t(2, 5, 2, 4), t(2, 5, 2, 4), attn_mask=t(2, 1, 3, 5, grad=False))
    mask = given([[[[True, False, True, True, False]] * 3]] * 2, "bool")
    yield call(sdpa, q, t(2, 5, 2, 4), t(2, 5, 2, 4), attn_mask=mask)
    yield call(sdpa, t(2, 3, 4, 4), t(2, 5, 2, 4), t(2, 5, 2, 4))

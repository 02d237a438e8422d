"""Products, solvers and decompositions."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

REGULAR = given([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.2, -0.4, 2.0]])
SYMMETRIC = given([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]], "float64")
BATCH = given([[[4.0, 1.0], [1.0, 3.0]], [[2.0, 0.5], [0.5, 1.0]]])


def cases() -> Iterator[Case]:
    yield from _products()
    yield from _contractions()
    yield from _solvers()
    yield from _decompositions()


def _products() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int64", "complex64"):
        yield call("mm", t(2, 3, dtype=dtype), t(3, 4, dtype=dtype))
        yield call("bmm", t(2, 2, 3, dtype=dtype), t(2, 3, 4, dtype=dtype))
        yield call("dot", t(3, dtype=dtype), t(3, dtype=dtype))
        yield call("mv", t(2, 3, dtype=dtype), t(3, dtype=dtype))
        yield call("outer", t(2, dtype=dtype), t(3, dtype=dtype))
        yield call("inner", t(2, 3, dtype=dtype), t(4, 3, dtype=dtype))
        yield call("kron", t(2, 3, dtype=dtype), t(2, 2, dtype=dtype))
    yield call("dot", t(2, 3), t(2, 3))
    yield call("outer", t(2, 2), t(3))
    yield call("inner", t(), t(3))
    yield call("inner", t(3), t(3))
    yield call("bmm", t(0, 2, 3), t(0, 3, 4))
    yield call("bmm", t(2, 2, 3), t(1, 3, 4))
    yield call("mm", t(3, 2, layout="T"), t(2, 4))
    yield call("addmm", t(2, 4), t(2, 3), t(3, 4))
    yield call("addmm", t(4), t(2, 3), t(3, 4), 0.5, 2.0)
    yield call("addmm", t(2, 4), t(2, 3), t(3, 4), beta=0.0, alpha=1.5)
    yield call("baddbmm", t(2, 2, 4), t(2, 2, 3), t(2, 3, 4), 0.5, 2.0)
    yield call("linalg.vecdot", t(2, 3), t(2, 3))
    yield call("vecdot", t(2, 3), t(2, 3), 0)
    yield call("cross", t(2, 3), t(2, 3))
    yield call("cross", t(3, 2), t(3, 2))
    yield call("cross", t(3, 3), t(3, 3), 1)
    yield call("kron", t(3), t(2, 2))
    yield call("linalg.multi_dot", [t(2, 3), t(3, 4), t(4, 2)])


def _contractions() -> Iterator[Case]:
    yield call("tensordot", t(2, 3, 4), t(3, 4, 5))
    yield call("tensordot", t(2, 3, 4), t(4, 5), 1)
    yield call("tensordot", t(2, 3), t(4, 5), 0)
    yield call("tensordot", t(2, 3, 4), t(4, 3, 5), [[1, 2], [1, 0]])
    yield call("tensordot", t(3, 4), t(3, 4), [0, 1])
    for equation, shapes in (
        ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)),
        ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)), ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
        ("...ij,...jk->...ik", ((2, 2, 3), (3, 2))), ("i,j->ij", ((2,), (3,))), ("i,i->", ((3,), (3,))),
        ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))), ("bhqd,bhkd->bhqk", ((1, 2, 3, 2), (1, 2, 4, 2))),
        ("i...->...", ((2, 3),)), ("ij,kl->lijk", ((2, 3), (2, 4))),
    ):  # fmt: skip
        yield call("einsum", equation, *(t(*s) for s in shapes))


def _solvers() -> Iterator[Case]:
    for x in (REGULAR, SYMMETRIC, BATCH):
        dtype, n = x.dtype, x.shape[-1]
        for name in ("linalg.inv", "linalg.det", "linalg.slogdet", "linalg.pinv", "linalg.matrix_exp"):
            yield call(name, x)
        yield call("linalg.solve", x, t(*x.shape[:-2], n, 2, dtype=dtype))
        yield call("linalg.solve", x, t(n, dtype=dtype)) if x.shape == (3, 3) else call("linalg.solve", x, t(2, 2, 1))
        for power in (0, 1, 3, -2):
            yield call("linalg.matrix_power", x, power)
        for upper in (True, False):
            yield call("linalg.triangular_solve", x, t(*x.shape[:-2], n, 2, dtype=dtype), upper)
            yield call("linalg.triangular_solve", x, t(*x.shape[:-2], n, 2, dtype=dtype), upper, True)
        yield call("linalg.triangular_solve", x, t(*x.shape[:-2], n, 2, dtype=dtype), unitriangular=True)
    for x in (SYMMETRIC, BATCH):
        for upper in (False, True):
            yield call("linalg.cholesky", x, upper)
            yield call("linalg.cholesky_solve", t(*x.shape[:-2], x.shape[-1], 2, dtype=x.dtype), x, upper)
    yield call("linalg.cholesky", given([[1.0, 2.0], [2.0, 1.0]]))
    yield call("linalg.inv", given([[1.0, 2.0], [2.0, 4.0]]))
    yield call("linalg.det", given([[1.0, 2.0], [2.0, 4.0]]))
    yield call("linalg.inv", t(2, 3))
    yield call("linalg.lstsq", t(4, 2), t(4, 1))
    for name in ("inv", "det"):
        yield call(f"Tensor.{name}" if name == "det" else "inverse", REGULAR)


def _decompositions() -> Iterator[Case]:
    for x in (SYMMETRIC, BATCH):
        yield call("linalg.eigvalsh", x)
        yield call("linalg.eigh", x)
        yield call("linalg.eigh", x, "U")
        yield call("linalg.eigvals", x)
        yield call("linalg.eig", x)
        yield call("linalg.qr", x)
        yield call("linalg.svd", x)
        yield call("linalg.svdvals", x)
    tall = t(4, 2, dtype="float64")
    yield call("linalg.qr", tall)
    yield call("linalg.qr", tall, "r")
    yield call("linalg.qr", t(4, 2, dtype="float64", grad=False), "complete")
    yield call("linalg.svd", tall)
    yield call("linalg.svd", t(4, 2, dtype="float64", grad=False), True)
    yield call("linalg.svdvals", tall)
    yield call("linalg.svd", t(2, 4, dtype="float64"))
    yield call("linalg.pinv", tall)
    yield call("linalg.pinv", SYMMETRIC, hermitian=True)
    yield call("linalg.matrix_rank", t(3, 3))
    yield call("linalg.cond", REGULAR)
    yield call("linalg.lu", REGULAR)
    yield call("linalg.matrix_norm", t(3, 4), 2)
    yield call("linalg.vector_norm", t(3, 4), 3)
    yield call("linalg.norm", t(3, 4), 2, 1)

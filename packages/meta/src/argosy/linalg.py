"""Linear algebra: the operators of the operator library that Paddle keeps under ``paddle.linalg``."""

from argosy.faces import face, operator_function

_NAMES = frozenset({
    "cdist", "cholesky", "cholesky_solve", "corrcoef", "cov", "cross", "det", "diagonal", "dot", "eig", "eigh",
    "eigvals", "eigvalsh", "inv", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "norm", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "triangular_solve", "vecdot", "vector_norm",
})  # fmt: skip


def _find(name: str) -> object | None:
    return operator_function(name) if name in _NAMES else None


__getattr__, __dir__ = face(__name__, {}, globals(), _find)

"""Linear algebra: the operators of the operator library that Paddle keeps under ``paddle.linalg``."""

from argosy.faces import face, operators_named

_NAMES = (
    "cdist", "cholesky", "cholesky_inverse", "cholesky_solve", "cond", "corrcoef", "cov", "cross", "det", "diagonal",
    "dot", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv", "lstsq", "lu", "lu_solve", "lu_unpack",
    "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "ormqr", "pca_lowrank", "pinv", "qr", "slogdet", "solve", "svd", "svd_lowrank", "svdvals", "triangular_solve",
    "vecdot", "vector_norm",
)  # fmt: skip


_TABLE = {"fp8_fp8_half_gemm_fused": "argosy.framework:fp8_fp8_half_gemm_fused"}

__getattr__, __dir__ = face(__name__, _TABLE, globals(), *operators_named(_NAMES))

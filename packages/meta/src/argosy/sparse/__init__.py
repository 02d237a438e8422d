"""Sparse tensors: coordinates (COO) and compressed rows (CSR), with Paddle's functions and layers of them."""

from argosy.faces import face

_UNARY = (
    "abs", "asin", "asinh", "atan", "atanh", "deg2rad", "expm1", "isnan", "log1p", "neg", "pow", "rad2deg", "sin",
    "sinh", "sqrt", "square", "tan", "tanh",
)  # fmt: skip
_TABLE = {
    "nn": "argosy.sparse.nn",
    **{name: f"argosy.sparse.creation:{name}" for name in ("mask_as", "sparse_coo_tensor", "sparse_csr_tensor")},
    **{name: f"argosy.sparse.unary:{name}" for name in (*_UNARY, "cast", "coalesce")},
    **{name: f"argosy.sparse.binary:{name}" for name in ("add", "divide", "is_same_shape", "multiply", "subtract")},
    **{name: f"argosy.sparse.products:{name}" for name in ("addmm", "masked_matmul", "matmul", "mv")},
    **{name: f"argosy.sparse.arrangement:{name}" for name in ("reshape", "slice", "sum", "transpose")},
    "pca_lowrank": "argosy.sparse.principal_components:pca_lowrank",
    **{name: f"argosy.sparse.tensors:{name}" for name in ("SparseCooTensor", "SparseCsrTensor", "SparseTensor")},
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

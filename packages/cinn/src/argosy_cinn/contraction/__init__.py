"""Matrix products, in the order one passes through: the problem (`problem`), its grid and chunks (`gemm`, or
`skinny` for few rows or columns), how it is cut (`blocking`) and which way round (`orientation`), the loops of a chunk
(`nest`), copies into reading order (`packing`), and a register tile from operands to epilogue (`stage`) with its
arithmetic (`tile`).

    problem = Contraction(m, n, k, Matrix(a, lda, 1), Matrix(b, ldb, 1), store_rows(c, ldc))
    with module.function("product", [("ptr", "argument"), ("i64", "chunk"), ("i64", "chunks")], export=False)
    as f:
        emit(f, problem, *f.arguments[1:])          # the problem's values belong to this function
    with module.function("run", [("ptr", "addresses"), ("ptr", "dims")]) as f:
        parallel_for(f, "product", f.arguments[0], grid(f, problem))

Values in a problem belong to the function they were made in: build it once in the kernel and once, for
`grid`, in the caller.
"""

from argosy_cinn.contraction.blocking import Blocking, choose
from argosy_cinn.contraction.gemm import emit, grid
from argosy_cinn.contraction.problem import Cells, Contraction, Epilogue, Matrix, Prologue, store_rows

__all__ = ["Blocking", "Cells", "Contraction", "Epilogue", "Matrix", "Prologue", "choose", "emit", "grid", "store_rows"]

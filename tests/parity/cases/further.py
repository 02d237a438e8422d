"""Functions beyond the families: special functions, stacking, statistics, matrices, keywords, in-place forms."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t


def cases() -> Iterator[Case]:
    yield from _special()
    yield from _stacking()
    yield from _scattering()
    yield from _statistics()
    yield from _matrices()
    yield from _keywords()
    yield from _methods()
    yield from _other_frameworks()


def _other_frameworks() -> Iterator[Case]:
    for name in ("softmax", "compat.nn.functional.softmax", "Tensor.softmax"):
        for shape in ((), (3,), (2, 3), (2, 3, 4), (2, 1, 3, 2)):
            yield call(name, t(*shape))
        yield call(name, t(2, 3, 4), -1)
        yield call(name, t(2, 3), dim=0, dtype="float64")
    for name in ("swapaxes", "swapdims", "Tensor.swapaxes", "Tensor.swapdims"):
        yield call(name, t(2, 3, 4), [2, 0, 1])
        yield call(name, t(2, 3, 4), 0, -1)
        yield call(name, t(2, 3, 4), dim0=1, dim1=2)
        yield call(name, t(2, 3), perm=[1, 0])
    for p in (2.0, 1.0, 3.0, float("inf")):
        yield call("pdist", t(4, 3), p)
    yield call("pdist", t(1, 3))
    yield call("pdist", t(3, 2, dtype="float64"))
    yield call("pdist", t(3))
    for causal in (False, True):
        yield call("nn.functional.flash_attn_qkvpacked", t(2, 5, 3, 2, 4), causal=causal, return_softmax=True)
        yield call(
            "nn.functional.flash_attention.flash_attention", t(2, 5, 2, 4), t(2, 5, 2, 4), t(2, 5, 2, 4), causal=causal
        )
    yield call("nn.functional.flash_attention.flash_attention", t(1, 3, 2, 4), t(1, 5, 2, 4), t(1, 5, 2, 4))


def _special() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        for name in ("i0e", "i1", "i1e"):
            yield call(name, t(2, 5, low=-25, high=25, dtype=dtype))
        for n in (0, 1, 3):
            yield call("polygamma", t(2, 3, low=0.3, high=5, dtype=dtype), n)
        yield call(
            "gammainc", t(2, 4, low=0.2, high=6, dtype=dtype, grad=False), t(2, 4, low=0.1, high=12, dtype=dtype)
        )
        yield call(
            "gammaincc", t(2, 4, low=0.2, high=6, dtype=dtype, grad=False), t(2, 4, low=0.1, high=12, dtype=dtype)
        )
        yield call("frexp", t(3, 4, dtype=dtype, grad=False))
        yield call("signbit", given([-1.0, -0.0, 0.0, 2.0], dtype))
        yield call("polar", t(2, 3, low=0.1, dtype=dtype), t(2, 3, dtype=dtype))
        yield call("renorm", t(3, 4, dtype=dtype), 2.0, 0, 1.0)
        yield call("renorm", t(2, 3, 4, dtype=dtype), 1.0, -1, 2.5)
        yield call("reduce_as", t(2, 3, 4, dtype=dtype), t(3, 1, dtype=dtype, grad=False))
    yield call("reduce_as", t(2, 3, dtype="int64"), t(3, dtype="int64"))
    yield call("signbit", t(4, dtype="int64"))
    yield call("isreal", t(3))
    yield call("isreal", given([1 + 0j, 2 - 1j], "complex64"))
    yield call("i0e", t())
    yield call("i1", t(0, 3))
    yield call("shard_index", given([[16], [1], [19]], "int64"), 20, 2, 1)
    yield call("shard_index", given([[16], [1]], "int64"), 20, 2, 5)


def _stacking() -> Iterator[Case]:
    for name in ("hstack", "vstack", "dstack", "column_stack", "row_stack"):
        yield call(name, [t(3), t(3)])
        yield call(name, [t(2, 3), t(2, 3)])
        yield call(name, [t(), t()])
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (3,), (2, 3), (2, 3, 4)):
            yield call(name, t(*shape))
        yield call(name, t(), t(2))
    yield call("tensor_split", t(7, 3), 3)
    yield call("tensor_split", t(7, 3), [2, 9, 1])
    yield call("tensor_split", t(2, 7), 4, axis=-1)
    yield call("hsplit", t(4, 6), 3)
    yield call("hsplit", t(6), [1, 4])
    yield call("vsplit", t(4, 6), 2)
    yield call("dsplit", t(2, 3, 4), 2)
    yield call("unstack", t(2, 3, 4), 1)
    yield call("unstack", t(2, 3), -1, 3)
    yield call("block_diag", [t(2, 3), t(1, 1), t(4)])
    yield call("cartesian_prod", [t(2), t(3)])
    yield call("cartesian_prod", [t(2)])
    yield call("combinations", t(4))
    yield call("combinations", t(3), 2, True)
    yield call("combinations", t(3), 0)
    yield call("broadcast_shape", [2, 1, 3], [1, 3])
    yield call("broadcast_shapes", [2, 1, 3], [4, 1])
    yield call("multiplex", [t(3, 2), t(3, 2)], given([[1], [0], [1]], "int32"))
    yield call("as_strided", t(3, 4), [2, 2], [4, 1], 4)
    yield call("as_strided", t(6), [3, 3], [1, 1])
    yield call("unfold", t(9), 0, 2, 4)
    yield call("unfold", t(2, 5, 3), 1, 3, 1)
    yield call("unfold", t(4), 0, 5, 1)
    yield call("crop", t(3, 4), [2, -1], [1, 1])
    yield call("crop", t(3, 4), [2, 2])
    yield call("diagflat", t(2, 2), 1)
    yield call("diagflat", t(3), -1)
    yield call("unique_consecutive", given([1, 1, 2, 2, 2, 1, 3], "int64"), True, True)
    yield call("unique_consecutive", given([[1, 2], [1, 2], [0, 1]], "int64"), axis=0)
    yield call("unique_consecutive", given([[1, 2], [1, 2], [0, 1]], "float32"), True)


def _scattering() -> Iterator[Case]:
    yield call("slice_scatter", t(4, 5), t(2, 5), [0], [1], [3], [1])
    yield call("slice_scatter", t(4, 6), t(4, 2), [1], [0], [4], [2])
    yield call("select_scatter", t(2, 3, 4), t(2, 4), 1, 1)
    yield call("select_scatter", t(2, 3), t(3), 0, -1)
    index = given([[0, 1, 0], [1, 1, 0]], "int64")
    yield call("scatter_add", t(3, 4), 0, index, t(2, 3))
    for how in ("sum", "prod", "amax", "amin", "mean"):
        yield call("scatter_reduce", t(3, 4), 0, index, t(2, 3), how)
        yield call("scatter_reduce", t(3, 4, grad=False), 0, index, t(2, 3, grad=False), how, include_self=False)
    for indices in ((given([0, 2], "int64"),), (given([0, 2, 0], "int64"), given([1, 1, 1], "int64"))):
        for accumulate in (False, True):
            count = indices[0].shape[0]
            value = t(count, 4) if len(indices) == 1 else given([1.0, 2.0, 1.0])
            yield call("index_put", t(3, 4, grad=False), indices, value, accumulate)


def _statistics() -> Iterator[Case]:
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        yield call("quantile", t(3, 5), 0.3, 1, interpolation=how)
        yield call("nanquantile", given([[1.0, float("nan"), 3.0, 5.0]]), 0.4, 1, interpolation=how)
    yield call("quantile", t(2, 3, 4), [0.2, 0.8], axis=[0, 2], keepdim=True)
    yield call("quantile", given([1.0, float("nan"), 3.0], grad=False), 0.5)
    yield call("quantile", t(4), 1.5)
    yield call("nanmedian", given([[1.0, float("nan"), 3.0, 5.0], [2.0, 2.0, 8.0, 1.0]]), 1)
    yield call("nanmedian", given([[1.0, float("nan"), 3.0, 5.0], [2.0, 3.0, 8.0, 1.0]]), 1, mode="min")
    yield call("nanmedian", given([float("nan"), float("nan")], grad=False))
    for rowvar in (True, False):
        yield call("linalg.cov", t(3, 5), rowvar)
        yield call("linalg.corrcoef", t(3, 5), rowvar)
    yield call("linalg.cov", t(5), ddof=False)
    yield call("linalg.cov", t(2, 4), fweights=given([1, 2, 1, 3], "int64"), aweights=t(4, low=0.1, grad=False))
    yield call("histogram_bin_edges", given([1.0, 2.0, 5.0]), 4)
    yield call("histogram_bin_edges", given([1.0, 2.0, 5.0]), 4, 0.0, 8.0)
    yield call("histogramdd", t(9, 2, grad=False), 3)
    yield call("histogramdd", t(9, 2, grad=False), [2, 4], [-2.0, 2.0, -1.0, 1.0], True)
    for name in ("trapezoid", "cumulative_trapezoid"):
        yield call(name, t(3, 4), t(4, low=0))
        yield call(name, t(3, 4), dx=0.5, axis=0)
        yield call(name, t(3, 4), t(3, 4), axis=0)


def _matrices() -> Iterator[Case]:
    for p in (None, "fro", "nuc", 1, -1, 2, -2, float("inf")):
        yield call("linalg.cond", given([[4.0, 1.0], [1.0, 3.0]]), p)
    yield call("linalg.multi_dot", [t(2, 3), t(3, 4), t(4, 2)])
    yield call("linalg.multi_dot", [t(3), t(3, 4), t(4)])
    yield call("linalg.matrix_rank", given([[1.0, 2.0], [2.0, 4.0]]))
    yield call("linalg.matrix_rank", t(2, 3, 4), 0.5)
    yield call("linalg.matrix_rank", given([[2.0, 0.0], [0.0, 0.0]]), hermitian=True)
    for upper in (True, False):
        factor = [[2.0, 1.0], [0.0, 3.0]] if upper else [[2.0, 0.0], [1.0, 3.0]]
        yield call("linalg.cholesky_inverse", given(factor), upper)
    yield call("linalg.lu", t(2, 3, 3))
    yield call("linalg.lu", t(4, 3), get_infos=True)
    pivots = given([2, 3, 3], "int32")
    yield call("linalg.lu_unpack", t(3, 3), pivots)
    yield call("linalg.lu_unpack", t(3, 4, grad=False), pivots)
    for trans in ("N", "T"):
        yield call("linalg.lu_solve", t(3, 2, grad=False), t(3, 3, low=1, grad=False), pivots, trans)
    yield call("linalg.householder_product", t(4, 3), t(3))
    for left in (True, False):
        for transpose in (True, False):
            yield call("linalg.ormqr", t(3, 3, grad=False), t(3, grad=False), t(3, 3, grad=False), left, transpose)
    for driver in ("gels", "gelsd", "gelss", None):
        yield call("linalg.lstsq", t(5, 3, grad=False), t(5, 2, grad=False), driver=driver)
    yield call("linalg.matrix_exp", t(2, 3, 3, dtype="float64"))
    yield call("linalg.matrix_exp", t(2, 2, low=-30, high=3, dtype="float64", grad=False))
    yield call("linalg.vector_norm", t(2, 3), 3.0, 1)


def _keywords() -> Iterator[Case]:
    yield call("add", t(2, 3), t(3), alpha=2)
    yield call("subtract", t(2, 3), t(3), alpha=0.5)
    for mode in ("floor", "trunc"):
        yield call("divide", t(2, 3, grad=False), t(3, low=0.3, grad=False), rounding_mode=mode)
    yield call("searchsorted", given([1.0, 2.0, 4.0]), given([2.0, 3.0]), side="right")
    yield call("repeat_interleave", t(2, 3), 2, 1, output_size=6)
    yield call("full", [2], 3.0, device="cpu", requires_grad=False)
    yield call("true_divide", t(2, 3), t(3, low=0.3))
    yield call("permute", t(2, 3, 4), [2, 0, 1])
    yield call("add", input=t(2, 3), other=t(3))
    yield call("sum", input=t(2, 3), dim=1, keepdim=True)
    yield call("positive", t(3))
    yield call("msort", t(4, 2))
    yield call("range", 0, 5, 1)
    yield call("rank", t(2, 3))
    yield call("shape", t(2, 3))
    yield call("is_empty", t(0, 3))
    yield call("argwhere", given([[1.0, 0.0], [0.0, 2.0]]))


def _methods() -> Iterator[Case]:
    for name in ("float", "half", "double", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble"):
        yield call("Tensor." + name, t(2, 3, low=0, high=3, grad=False))
    yield call("Tensor.to", t(2), "float64")
    yield call("Tensor.to", t(2), "cpu")
    yield call("Tensor.type_as", t(2), t(2, dtype="float64"))
    yield call("Tensor.split_with_sizes", t(5, 2), [2, 3])
    yield call("Tensor.repeat", t(2, 3), [2, 1])
    yield call("Tensor.new_full", t(2), [2, 2], 3.0)
    yield call("Tensor.new_zeros", t(2, dtype="int64"), [3])
    for name in ("equal_", "less_than_", "greater_equal_", "not_equal_"):
        yield call("Tensor." + name, t(4, dtype="int64"), t(4, dtype="int64", low=-1))
    for name in ("logical_and_", "logical_or_", "logical_xor_"):
        yield call("Tensor." + name, t(4, dtype="bool"), given([True, False, True, False], "bool"))
    yield call("Tensor.logical_not_", t(4, dtype="bool"))
    yield call("Tensor.gcd_", given([4, 6], "int64"), given([6, 9], "int64"))
    yield call("Tensor.i0_", t(3, grad=False))
    yield call("Tensor.polygamma_", t(3, low=1, grad=False), 1)
    yield call("Tensor.gammainc_", t(3, low=1, grad=False), t(3, low=1, grad=False))
    yield call("Tensor.transpose_", t(2, 3, grad=False), [1, 0])
    yield call("Tensor.t_", t(2, 3, grad=False))
    yield call("Tensor.where_", t(3, dtype="bool"), t(3, grad=False), t(3, grad=False))
    yield call("Tensor.fill_diagonal_", t(3, 3, grad=False), 5.0)
    yield call("Tensor.fill_diagonal_", t(7, 3, grad=False), 5.0, wrap=True)
    yield call("Tensor.fill_diagonal_tensor", t(3, 4), t(3))

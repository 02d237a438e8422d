"""Members of ``Tensor`` beyond operators and indexing: gradients, memory, kinds."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, attribute_of, call, script
from parity.inputs import given
from parity.inputs import tensor as t

NOT_DENSE = (
    "rows", "cols", "crows", "nnz", "indices", "values", "coalesce", "is_coalesced", "get_map_tensor", "cuda",
    "pin_memory",
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name in ("hooked", "retained", "node_of", "wanted", "applied", "addresses", "versions", "kinds"):
        yield script(name, t(2, 3))
    yield script("number_formats", t(2, 3))
    yield script("vector_element", t(2, 3))
    yield script("minimised", t(4, 3))
    yield script("replaced", t(2, 3), t(2, 3))
    yield script("reset", t(2, 3))
    yield script("reset", t(2, 3), shape=[2, 2], stride=[3, 1], offset=4)
    for shape, fill in (([3, 2], False), ([4], False), ([3, 3], True)):
        yield script("resized", t(2, 3), shape, fill)
    yield script("created", "float32")
    yield script("overwritten", t(2, 3), "silu")
    yield script("overwritten", t(2, 3), "dropout", p=1.0)
    for name in ("data", "device", "grad_", "inplace_version", "is_cuda", "layout", "num_shard", "offset", "strides"):
        yield attribute_of(f"Tensor.{name}", t(2, 3, layout="T"))
    for name in ("placements", "process_mesh", "requires_grad", "type", "place", "dtype"):
        yield attribute_of(f"Tensor.{name}", t(2, 3))
    for name in NOT_DENSE:
        yield call(f"Tensor.{name}", t(2, 3))
    for name in ("cpu", "get_strides", "stride", "value", "gradient"):
        yield call(f"Tensor.{name}", t(2, 3, layout="T"))
    yield call("Tensor.new_empty", t(2, grad=False), [0, 3])
    yield call("Tensor.new_ones", t(2, grad=False), 2, 3)
    yield call("Tensor.new_zeros", t(2, dtype="int64"), [2, 3])
    yield from _documented()


def _documented() -> Iterator[Case]:
    """What the examples of the wheel's documentation use."""
    one = given([4], "int32")
    yield call("reshape", t(2, 4, 6), [one, 12])
    yield call("slice", t(4, 5, 6), [0, 1], [given([-3], "int32"), 0], [3, 2])
    yield call("concat", [t(2, 3), t(2, 3)], given([0], "int32"))
    yield call("tensordot", t(2, 3, 4), t(5, 3, 4), [[1, 2], [1]])
    yield call("searchsorted", given([1, 3, 5], "int64"), given([[3, 6], [4, 9]], "int32"))
    yield call("searchsorted", given([1.0, 3.0, 5.0], "float64", grad=False), given([2, 3], "int32"))
    yield call("median", t(3, 4, dtype="int64"), mode="min")
    yield call("median", t(3, 4, dtype="int64"), 1, mode="min")
    nan = float("nan")
    yield call("median", given([[1.0, nan, 3.0, nan], [1.0, 2.0, 3.0, 4.0]], grad=False), 1, mode="min")
    yield call("range", 4.999, dtype="float32")
    yield call("range", 5, 0, -2)
    yield call("range", 0, 2.5, 0.5)
    yield call("nn.functional.cross_entropy", t(4, 3, dtype="float64"), given([[1, 0, 0]] * 4, grad=False),
               label_smoothing=0.4)  # fmt: skip
    yield call("view_as_complex", t(3, 2))
    yield call("view_as_real", t(3, dtype="complex64"))
    yield call("tolist", t(2, 3, dtype="int64"))
    yield call("linalg.fp8_fp8_half_gemm_fused", t(2, 3), t(3, 2))

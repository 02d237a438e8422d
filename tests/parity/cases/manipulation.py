"""Shapes, axes, joining, splitting, repeating and masks."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

DTYPES = ("float64", "int32", "int64", "bool", "complex64")


def cases() -> Iterator[Case]:
    yield from _shapes()
    yield from _axes()
    yield from _joining()
    yield from _repeating()
    yield from _casts()
    yield from _masks()
    yield from _padding()
    yield from _diagonals()


def _shapes() -> Iterator[Case]:
    for shape in ([3, 8], [-1], [4, -1], [2, 0, 4], [0, -1], (24,), [2, 3, 4, 1]):
        yield call("reshape", t(2, 3, 4), shape)
    yield call("reshape", t(2, 3, 4, layout="T"), [6, 4])
    yield call("reshape", t(0, 3), [3, 0])
    yield call("reshape", t(0, 3), [-1, 3])
    yield call("reshape", t(1), [])
    yield call("reshape", t(), [1, 1])
    yield call("reshape", t(2, 3), [4, 2])
    yield call("reshape", t(2, 3), [-1, -1])
    yield call("reshape", t(2, 3), given([3, 2], "int64"))
    yield call("reshape", t(2, 3), [given(3, "int64"), -1])
    for dtype in DTYPES:
        yield call("reshape", t(2, 3, dtype=dtype), [3, 2])
        yield call("transpose", t(2, 3, dtype=dtype), [1, 0])
    for args in ((), (1,), (0, 1), (-2, -1), (1, 1)):
        yield call("flatten", t(2, 3, 4), *args)
    yield call("flatten", t())
    yield call("flatten", t(0, 3))
    yield call("flatten", t(2, 3, layout="T"))
    for axis in (None, 0, 1, -1, [0, 2], [0, 1]):
        yield call("squeeze", t(1, 3, 1), axis)
        if axis is not None:
            yield call("unsqueeze", t(2, 3), axis)
    yield call("unsqueeze", t(), 0)
    yield call("unsqueeze", t(2), [-1, 0])
    yield call("unsqueeze", t(2), 3)
    yield call("unsqueeze", t(2, 3), given([0, 1], "int64"))
    yield call("squeeze", t())
    yield call("squeeze", t(2, 1), 5)
    yield call("view", t(2, 6), [3, 4])
    yield call("view", t(2, 6), [-1, 2])
    yield call("view", t(2, 6), "int32")
    yield call("view", t(2, 6, dtype="int64"), "int32")
    yield call("view_as", t(2, 6), t(3, 4))
    yield call("unflatten", t(2, 6), 1, [2, -1])
    yield call("Tensor.reshape_", t(2, 6), [3, 4])
    yield call("Tensor.squeeze_", t(2, 1))
    yield call("Tensor.unsqueeze_", t(2, 1), 0)
    yield call("Tensor.flatten_", t(2, 3))
    yield call("shape", t(2, 3))
    yield call("rank", t(2, 3))


def _axes() -> Iterator[Case]:
    for perm in ([0, 2, 1], [2, 0, 1], [-1, 0, 1], [0, 1, 2]):
        yield call("transpose", t(2, 3, 4), perm)
    yield call("transpose", t(), [])
    yield call("transpose", t(2, 3), [0])
    yield call("transpose", t(2, 3), [0, 0])
    yield call("transpose", t(0, 3), [1, 0])
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        yield call("t", t(*shape))
    yield call("matrix_transpose", t(2, 3, 4))
    yield call("moveaxis", t(2, 3, 4), 0, 2)
    yield call("moveaxis", t(2, 3, 4), [0, 1], [-1, 0])
    yield call("moveaxis", t(2, 3, 4), -1, 0)
    yield call("swapaxes", t(2, 3, 4), 0, -1)
    yield call("swapaxes", t(2, 3, 4), 1, 1)
    for axis in (0, -1, [0, 2], [1], (0, 1)):
        yield call("flip", t(2, 3, 4), axis)
    yield call("flip", t(2, 3, layout="T"), 0)
    yield call("flip", t(0, 3), 1)
    yield call("flip", t(2, 3), [])
    yield call("roll", t(2, 3, 4), 2)
    yield call("roll", t(2, 3, 4), 1, 0)
    yield call("roll", t(2, 3, 4), [1, -2], [0, 2])
    yield call("roll", t(2, 3, 4), -5, -1)
    yield call("roll", t(0, 3), 1, 0)
    yield call("roll", t(4, dtype="int64"), 1)
    yield call("rot90", t(2, 3))
    yield call("rot90", t(2, 3, 2), 3, [1, 2])
    yield call("Tensor.transpose", t(2, 3, 4), [2, 1, 0])
    yield call("Tensor.t", t(2, 3))
    yield call("as_complex", t(3, 2))
    yield call("as_real", t(3, dtype="complex64"))
    yield call("as_strided", t(6), [2, 3], [3, 1])


def _joining() -> Iterator[Case]:
    for axis in (0, 1, -1):
        yield call("concat", [t(2, 3), t(2, 3)], axis)
        yield call("stack", [t(2, 3), t(2, 3)], axis)
    yield call("stack", [t(2, 3), t(2, 3)], 2)
    yield call("stack", [t(), t()])
    yield call("concat", [t(2, 3), t(4, 3), t(0, 3)])
    yield call("concat", [t(2, 3, layout="T"), t(1, 3)])
    yield call("concat", [t(2, 3), t(2, 2)])
    yield call("concat", [t(3), t(3, dtype="float64")])
    yield call("concat", [t(3, dtype="int32"), t(3, dtype="float32")])
    yield call("concat", [t(), t()])
    for dtype in DTYPES:
        yield call("concat", [t(2, dtype=dtype), t(3, dtype=dtype)])
        yield call("stack", [t(2, dtype=dtype), t(2, dtype=dtype)], 1)
    yield call("split", t(6, 4), 3)
    yield call("split", t(6, 4), 2, 1)
    yield call("split", t(6, 4), [1, 2, 3])
    yield call("split", t(6, 4), [1, -1, 2], axis=0)
    yield call("split", t(6, 4), 4)
    yield call("split", t(6, 4), 2, -1)
    yield call("split", t(6, 4, layout="T"), 2, 1)
    yield call("chunk", t(6, 4), 3)
    yield call("chunk", t(6, 4), 2, 1)
    yield call("chunk", t(5, 4), 2)
    yield call("unbind", t(3, 2))
    yield call("unbind", t(3, 2), 1)
    yield call("unbind", t(3, 2), -1)
    yield call("unstack", t(3, 2), 1)
    for name in ("hstack", "vstack", "dstack", "column_stack", "row_stack"):
        yield call(name, [t(2, 3), t(2, 3)])
        yield call(name, [t(3), t(3)])
        yield call(name, t(2, 3))
        yield call(name, t(3))
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (3,), (2, 3)):
            yield call(name, t(*shape))
    yield call("tensor_split", t(5, 4), 3)
    yield call("tensor_split", t(5, 4), [1, 3], 1)
    yield call("hsplit", t(4, 4), 2)
    yield call("vsplit", t(4, 4), [1, 3])
    yield call("block_diag", [t(2, 2), t(1, 3)])
    yield call("cartesian_prod", [t(2), t(3)])


def _repeating() -> Iterator[Case]:
    for shape in ([2, 3], [4, 2, 3], [-1, 3], [2, -1, 3]):
        yield call("expand", t(1, 3), shape)
        yield call("broadcast_to", t(1, 3), shape)
    yield call("expand", t(), [2, 2])
    yield call("expand", t(3), [0, 3])
    yield call("expand", t(2, 3), [2, 4])
    yield call("expand", t(3, dtype="int64"), [2, 3])
    yield call("expand_as", t(1, 3), t(2, 3))
    yield call("expand_as", t(3), t(2, 2, 3))
    yield call("broadcast_tensors", [t(1, 3), t(2, 1)])
    yield call("broadcast_shape", [2, 1, 3], [4, 1])
    for repeats in ([2], [2, 3], [2, 1, 2], [0, 2], 2, (1, 2)):
        yield call("tile", t(2, 3), repeats)
    yield call("tile", t(), [2, 2])
    yield call("tile", t(2, dtype="int64"), [3])
    for axis in (None, 0, 1, -1):
        yield call("repeat_interleave", t(2, 3), 2, axis)
    yield call("repeat_interleave", t(2, 3), given([1, 2], "int64"), 0)
    yield call("repeat_interleave", t(3, dtype="int64"), 2)
    yield call("repeat_interleave", t(2, 3), 0, 0)


def _casts() -> Iterator[Case]:
    for source in ("float32", "float64", "int32", "int64", "bool", "complex64"):
        for target in ("float32", "float64", "int32", "int64", "bool", "complex64", "uint8", "int16"):
            yield call("cast", t(5, dtype=source, low=0, high=6), target)
    yield call("cast", given([-1.7, 2.9, -0.2]), "int32")
    yield call("cast", given([300, -1], "int64"), "uint8")
    yield call("cast", t(0, 3), "int64")
    yield call("Tensor.astype", t(3, layout="T"), "float64")
    yield call("Tensor.cast", t(3), "int64")
    yield call("Tensor.cast_", t(3), "float64")
    for dtype in ("float32", *DTYPES):
        yield call("assign", t(2, 3, dtype=dtype))
        yield call("clone", t(2, 3, dtype=dtype))
    yield call("assign", t(2, 3, layout="T"))
    yield call("assign", [1.5, 2.5])
    yield call("assign", [[1, 2]])
    yield call("assign", t())


def _masks() -> Iterator[Case]:
    mask = t(2, 3, dtype="bool")
    yield call("where", mask, t(2, 3), t(2, 3))
    yield call("where", mask, t(3), t(2, 1))
    yield call("where", t(dtype="bool"), t(), t())
    yield call("where", t(3, dtype="bool"), t(2, 3), t(2, 3))
    yield call("where", mask, t(2, 3), 0.0)
    yield call("where", mask, 1.0, t(2, 3))
    yield call("where", mask, t(2, 3, dtype="int64"), t(2, 3, dtype="int64"))
    yield call("where", mask, t(2, 3), t(2, 3, dtype="float64"))
    yield call("where", t(0, 3, dtype="bool"), t(0, 3), t(0, 3))
    yield call("where", mask, 1.0, 2.0)
    yield call("masked_fill", t(2, 3), mask, 1.5)
    yield call("masked_fill", t(2, 3), t(3, dtype="bool"), given(2.0))
    yield call("masked_fill", t(3), mask, 1.5)
    yield call("masked_fill", t(2, 3, dtype="int64"), mask, 7)
    yield call("Tensor.masked_fill_", t(2, 3), mask, 1.5)
    for name in ("tril", "triu"):
        for diagonal in (0, 1, -1, 5):
            yield call(name, t(3, 4), diagonal)
        yield call(name, t(2, 3, 3))
        yield call(name, t(3, 3, dtype="int64"), diagonal=-1)
        yield call(name, t(3))
        yield call(name, t(3, 3, dtype="bool"))
        yield call(name, t(0, 3))
        yield call(name, t(4, 3, layout="T"))


def _padding() -> Iterator[Case]:
    f = "nn.functional.pad"
    yield call(f, t(2, 3), [1, 2, 0, 1])
    yield call(f, t(2, 3), [1, 2, 0, 1], value=1.5)
    yield call(f, t(2, 3), [1, 2])
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield call(f, t(1, 2, 4), [1, 2], mode, data_format="NCL")
        yield call(f, t(1, 2, 3, 4), [1, 2, 1, 0], mode)
        yield call(f, t(1, 3, 4, 2), [1, 2, 1, 0], mode, data_format="NHWC")
        yield call(f, t(1, 1, 3, 3, 4), [1, 2, 1, 0, 1, 1], mode, data_format="NCDHW")
    yield call(f, t(1, 2, 3, 4), [-1, 0, 0, -1])
    yield call(f, t(1, 2, 3, 4, dtype="int64"), [1, 1, 1, 1], value=3)
    yield call(f, t(1, 2, 3, 4, dtype="float64"), [1, 1, 1, 1], "reflect")
    yield call(f, t(2, 3), [0, 0, 1, 1], pad_from_left_axis=False)
    yield call(f, t(2, 3, 4), [1, 0, 0, 1, 2, 2], pad_from_left_axis=True)
    yield call("nn.functional.zeropad2d", t(1, 2, 3, 4), [1, 2, 1, 0])


def _diagonals() -> Iterator[Case]:
    for offset in (0, 1, -1, 5):
        yield call("diagonal", t(3, 4), offset)
        yield call("diag", t(3, 4), offset)
        yield call("diag_embed", t(2, 3), offset)
        yield call("diagflat", t(3), offset)
    yield call("diag", t(3))
    yield call("diag", t(3), 1, 2.0)
    yield call("diag", t(3, dtype="int64"), -1, padding_value=5)
    yield call("diagonal", t(2, 3, 4), 0, 1, 2)
    yield call("diagonal", t(2, 3, 4), 1, axis1=-1, axis2=0)
    yield call("diag_embed", t(2, 3), 1, 0, 2)
    yield call("diag_embed", t(3, dtype="int64"))
    yield call("Tensor.diagonal", t(3, 3))
    yield call("diagonal_scatter", t(3, 3), t(3))

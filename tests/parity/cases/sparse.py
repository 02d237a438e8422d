"""Sparse tensors: made, told apart, computed with, convolved. What the wheel has for GPUs only is tested without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, script
from parity.inputs import given
from parity.inputs import tensor as t

UNARY = (
    "abs", "asin", "asinh", "atan", "atanh", "deg2rad", "expm1", "isnan", "log1p", "neg", "rad2deg", "sin", "sinh",
    "sqrt", "square", "tan", "tanh", "nn.functional.relu", "nn.functional.relu6", "nn.functional.leaky_relu",
)  # fmt: skip
MATRIX = [[0.0, -0.5, 0.0, 0.7], [0.0, 0.0, 0.0, 0.0], [0.9, 0.2, 0.0, -0.3]]
OTHER = [[0.0, 0.6, 0.4, 0.0], [0.5, 0.0, 0.0, 0.0], [-0.2, 0.1, 0.0, 0.3]]
POSITIVE = [[0.0, 0.6, 0.0, 0.8], [0.0, 0.0, 0.0, 0.1], [0.9, 0.2, 0.0, 0.0]]
BATCH = [MATRIX, OTHER]
FULL = [[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [4.0, 5.0]]]  # the wheel reads beyond CSR matrices with empty rows
KINDS = ("2", "csr")


def _grid(*sizes: int, channels: int, stored: tuple[int, ...]) -> Any:
    """A dense tensor [1, *sizes, channels] of zeros but for these places of the grid."""
    count = 1
    for n in sizes:
        count *= n
    flat = [0.0] * (count * channels)
    for i, place in enumerate(stored):
        for c in range(channels):
            flat[place * channels + c] = (-1.0) ** i * (1.0 + i * 0.25 + c * 0.5)
    shaped: Any = flat
    for n in (channels, *sizes[::-1]):
        shaped = [shaped[i : i + n] for i in range(0, len(shaped), n)]
    return given([shaped[0]])


FLAT = _grid(4, 5, channels=2, stored=(0, 3, 7, 13, 14, 19))
VOLUME = _grid(3, 4, 4, channels=2, stored=(0, 5, 6, 21, 30, 47))


def cases() -> Iterator[Case]:
    for kind in KINDS:
        for name in UNARY:
            yield script("sparse_call", name, given(POSITIVE if name in ("sqrt", "log1p") else MATRIX), kind)
        yield script("sparse_call", "pow", given(MATRIX), kind, 2.0)
        yield script("sparse_call", "sin", given(MATRIX, "float64"), kind)
        yield script("sparse_call", "cast", given(MATRIX), kind, "int32", "float64")
        yield script("sparse_call", "cast", given(MATRIX), kind, "int32")
        yield script("sparse_members", given(MATRIX), kind)
        for name in ("add", "subtract", "multiply", "divide"):
            yield script("sparse_pair", name, given(MATRIX), given(OTHER), kind)
        yield script("sparse_pair", "add", given(MATRIX), given(MATRIX, "float64"), kind)
        yield script("sparse_pair", "add", given([[0, 2], [3, 0]], "int64"), given([[1, 2], [0, 0]], "int64"), kind)
        yield script("sparse_pair", "is_same_shape", given(MATRIX), given(OTHER), kind)
        yield script("sparse_pair", "multiply", given(MATRIX), given([[1.0]]), kind)
        yield script("sparse_call", "multiply", given(MATRIX), kind, 2.5)
        yield script("sparse_call", "divide", given(MATRIX), kind, 2.5)
        yield script("sparse_call", "transpose", given(MATRIX), kind, [1, 0])
        yield script("sparse_call", "transpose", given(MATRIX), kind, [0, 0])
        yield script("sparse_call", "reshape", given(MATRIX), kind, [-1, 6])
        yield script("sparse_call", "reshape", given(MATRIX), kind, [5, 2])
        yield script("sparse_call", "slice", given(MATRIX), kind, [0, 1], [-2, 1], [3, 100])
        yield script("sparse_call", "slice", given(MATRIX), kind, [0], [0, 1], [1])
        yield script("sparse_call", "nn.functional.softmax", given(POSITIVE), kind)
        yield script("sparse_layer", "nn.Softmax", given(POSITIVE), kind)
        yield script("sparse_layer", "nn.LeakyReLU", given(MATRIX), kind, negative_slope=0.3)
        yield script("sparse_layer", "nn.ReLU", given(MATRIX), kind)
        yield script("sparse_layer", "nn.ReLU6", given(MATRIX), kind)
        yield script("sparse_masked", t(3, 4), given(MATRIX), kind)
        yield script("sparse_masked", t(4, 3), given(MATRIX), kind)
        yield script("sparse_turned", given(MATRIX), kind, "csr")
        yield script("sparse_turned", given(MATRIX), kind, "2")
    yield from _of_more_axes()
    yield from _sums()
    yield from _made()
    yield from _convolutions()


def _of_more_axes() -> Iterator[Case]:
    yield script("sparse_members", given(BATCH), "3")
    yield script("sparse_members", given(BATCH), "2")
    yield script("sparse_members", given(FULL), "csr")
    yield script("sparse_members", given(BATCH), "4")
    yield script("sparse_call", "transpose", given(BATCH), "3", [2, 0, 1])
    yield script("sparse_call", "transpose", given(FULL), "csr", [0, 2, 1])
    yield script("sparse_call", "transpose", given(FULL), "csr", [2, 1, 0])
    yield script("sparse_call", "reshape", given(BATCH), "3", [0, 2, -1])
    yield script("sparse_call", "reshape", given(FULL), "csr", [4, 2])
    yield script("sparse_call", "slice", given(BATCH), "3", [1, 2], [0, 1], [2, -1])
    yield script("sparse_call", "slice", given(FULL), "csr", [0, 1], [1, 0], [2, 1])
    for axis in (0, 1, -1):
        yield script("sparse_call", "nn.functional.softmax", given(BATCH), "3", axis)
        yield script("sparse_call", "nn.functional.softmax", given(BATCH), "2", axis)
    yield script("sparse_call", "nn.functional.softmax", given(FULL), "csr", -1)
    yield script("sparse_call", "nn.functional.softmax", given(FULL), "csr", 1)
    for name in ("add", "subtract", "multiply"):
        yield script("sparse_pair", name, given(BATCH), given([OTHER, MATRIX]), "3")
        yield script("sparse_pair", name, given(BATCH), given([OTHER, MATRIX]), "2")


def _sums() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for keepdim in (False, True):
            yield script("sparse_call", "sum", given(MATRIX), "2", axis, None, keepdim)
            yield script("sparse_call", "sum", given(BATCH), "3", axis, None, keepdim)
    yield script("sparse_call", "sum", given(MATRIX), "2", None, None, True)
    yield script("sparse_call", "sum", given(MATRIX), "csr")
    yield script("sparse_call", "sum", given(POSITIVE), "csr", -1)
    yield script("sparse_call", "sum", given(POSITIVE), "csr", -1, "float64", True)
    yield script("sparse_call", "sum", given([[0, 2], [3, 4]], "int32"), "2", 0)
    yield script("sparse_call", "sum", given(BATCH), "2", 0)
    yield script("sparse_call", "sum", given(MATRIX), "2", 5)


def _made() -> Iterator[Case]:
    coo, csr = "sparse_coo_tensor", "sparse_csr_tensor"
    at, values = given([[0, 1, 2], [1, 2, 0]], "int64"), given([1.0, 2.0, 3.0])
    yield script("sparse_made", coo, at, values, [3, 4])
    yield script("sparse_made", coo, at, values)
    yield script("sparse_made", coo, at, values, [3, 4], "float64", stop_gradient=False)
    yield script("sparse_made", coo, [[0, 1, 2]], [[1, 2], [3, 4], [5, 6]], [4, 2], stop_gradient=False)
    yield script("sparse_made", coo, [[0, 1, 2]], [1, 2, 3])
    yield script("sparse_made", coo, given([[0, 2]], "int32"), [1.0, 2.0], [3])
    for bad in (
        ([[0, 5], [0, 0]], [1.0, 2.0], [2, 3]),
        ([0, 1], [1.0, 2.0]),
        ([[0, 1]], [1.0]),
        ([[0, 1]], [1.0, 2.0], [2, 2]),
    ):
        yield script("sparse_made", coo, *bad)
    yield script("sparse_made", coo, [[0.0, 1.0]], [1.0, 2.0])
    repeated = given([[0, 0, 1, 0], [2, 1, 0, 2]], "int64"), t(4)
    yield script("sparse_coalesced", *repeated, [2, 3])
    yield script("sparse_coalesced", repeated[0], t(4, 2), [2, 3, 2])
    crows, cols = given([0, 2, 3, 5], "int64"), given([1, 3, 2, 0, 1], "int64")
    yield script("sparse_made", csr, crows, cols, t(5), [3, 4], stop_gradient=False)
    yield script("sparse_made", csr, crows, cols, t(5))
    yield script("sparse_made", csr, [0, 1, 2, 0, 1, 2], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    yield script("sparse_made", csr, [0, 1, 2, 0, 1, 2], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [2, 2, 2], "float64")
    for rows, columns, shape in (
        ([0, 2, 3], [0, 2], [2, 3]), ([0, 2, 3], [0, 2, 1], [3, 3]), ([1, 2, 3], [0, 2, 1], [2, 3]),
        ([0, 2, 2], [0, 2, 1], [2, 3]), ([0, 2, 3], [0, 2, 1], [1, 1, 2, 3]),
    ):  # fmt: skip
        yield script("sparse_made", csr, rows, columns, [1.0, 2.0, 3.0], shape)


def _convolutions() -> Iterator[Case]:
    two, three = t(3, 3, 2, 3), t(3, 3, 3, 2, 2)
    for name, x, weight, kind in (("conv2d", FLAT, two, "3"), ("conv3d", VOLUME, three, "4")):
        call = f"nn.functional.{name}"
        yield script("sparse_call", call, x, kind, weight)
        yield script("sparse_call", call, x, kind, weight, None, 1, 1)
        yield script("sparse_call", call, x, kind, weight, t(weight.shape[-1]), 2, 1)
        yield script("sparse_call", call, x, kind, weight, None, 1, 2, 2)
        yield script("sparse_call", call, x, kind, weight, None, 1, [1, 0, 1][: len(x.shape) - 2])
        yield script("sparse_call", f"nn.functional.subm_{name}", x, kind, weight, t(weight.shape[-1]), 1, 1)
        yield script("sparse_call", f"nn.functional.subm_{name}", x, kind, weight, None, key="place")
        yield script("sparse_call", call, x, kind, weight, None, 1, 0, 1, 2)
        size = {"in_channels": 2, "out_channels": weight.shape[-1], "kernel_size": 3, "padding": 1}
        yield script("sparse_layer", f"nn.{name.title()[:-1]}D", x, kind, weight, t(weight.shape[-1]), **size)
        yield script("sparse_layer", f"nn.Subm{name.title()[:-1]}D", x, kind, weight, t(weight.shape[-1]), **size)
    yield script("sparse_call", "nn.functional.max_pool3d", VOLUME, "4", 2)
    yield script("sparse_call", "nn.functional.max_pool3d", VOLUME, "4", [3, 2, 2], 1, 1)
    yield script("sparse_layer", "nn.MaxPool3D", VOLUME, "4", kernel_size=3, stride=2, padding=1)
    for training in (True, False):
        yield script("sparse_layer", "nn.BatchNorm", VOLUME, "4", t(2), t(2), training=training, num_features=2)
    yield script(
        "sparse_layer", "nn.BatchNorm", FLAT, "3", t(2), t(2), num_features=2, data_format="NHWC", momentum=0.5
    )
    yield script("sparse_layer", "nn.BatchNorm", FLAT, "3", num_features=2, data_format="NCHW")

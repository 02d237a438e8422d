"""Dilated convolutions as convolutions of an image's phases, where minimal filtering then makes them faster.

With a window spread by ``d``, place ``d q + r`` of the result sees the elements ``d (q + t) + r`` of the image (shifted
by the padding) at its taps ``t``: every phase ``r`` is an image of its own under a window that is not spread (the space
to batch transform of Yu and Koltun's dilated convolutions, 2016). The phases are samples of one convolution with stride
one. Gradients of such weights, convolutions with stride ``d`` whose windows are the result's gradient, sum over the
phases. Copying the phases in and out takes little beside the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from argosy_cinn.contraction.winograd.blocking import Images, plan_images
from argosy_cinn.contraction.winograd.transforms import TAPS
from argosy_cinn.contraction.winograd.weights import plan_gradient
from argosy_cinn.dialect import KEPT
from argosy_cinn.rewrites.builders import constant, emit
from argosy_cinn.shapes import sizes
from argosy_phi_ops.context import context
from argosy_pir.core import Operation
from argosy_pir.rewrite.fuel import spend
from argosy_pir.types import TensorType
from argosy_pir.values import Value


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis: ``size`` of the image, ``spread`` of the window, padding ``low`` and ``places`` of the
    result."""

    size: int
    spread: int
    low: int
    places: int

    @property
    def zeros_before(self) -> int:
        """Zeros before the image, so that the rest of the padding is the same for all phases."""
        return self.low % self.spread

    @property
    def image_size(self) -> int:
        """Elements of a phase of the image."""
        return -(-(self.size + self.zeros_before) // self.spread)

    @property
    def result_size(self) -> int:
        """Places of a phase of the result."""
        return -(-self.places // self.spread)

    @property
    def padding(self) -> tuple[int, int]:
        """Of a phase of the image."""
        low = self.low // self.spread
        return low, self.result_size + TAPS - 1 - self.image_size - low


def interleave_phases(op: Operation, vector_bits: int) -> Value | None:
    """A ``prim.conv`` by the phases of its image; None where that is not possible, or not worth it."""
    x, w = op.operands
    static = all(isinstance(n, int) for v in (x, w, op.result) for n in v.shape)
    a = op.attributes
    plain = all(n == 1 for n in a["lhs_dilation"]) and all(low >= 0 for low, _ in a["padding"])
    if not static or not plain or len(x.shape) != 4 or any(v.dtype != "float32" for v in (x, w, op.result)):
        return None
    ones = (1, 1)
    if tuple(a["strides"]) == ones != tuple(a["rhs_dilation"]) and sizes(w)[2:] == (TAPS, TAPS):
        return _result(op, _axes(op, a["rhs_dilation"], sizes(op.result)), vector_bits)
    if tuple(a["rhs_dilation"]) == ones != tuple(a["strides"]) and sizes(op.result)[2:] == (TAPS, TAPS):
        return _gradient(op, _axes(op, a["strides"], sizes(w)), vector_bits) if a["groups"] == 1 else None
    return None


def _axes(op: Operation, spread: Sequence[int], places: Sequence[int]) -> list[_Axis]:
    along = zip(sizes(op.operand(0))[2:], spread, op.attributes["padding"], places[2:], strict=True)
    return [_Axis(n, d, low, m) for n, d, (low, _), m in along]


def _result(op: Operation, axes: list[_Axis], vector_bits: int) -> Value | None:
    """The convolution itself, its phases put in their places."""
    x, w = op.operands
    groups, filters = op.attributes["groups"], sizes(w)[0]
    images = _images(sizes(w)[1], sizes(x)[0], axes)
    if plan_images(images, filters // groups, vector_bits) is None or not spend("winograd", op):
        return None
    phases = _phases(x, [axis.zeros_before for axis in axes], [axis.image_size for axis in axes], axes)
    return _in_place(_convolution(phases, w, axes, groups), sizes(x)[0], axes)


def _gradient(op: Operation, axes: list[_Axis], vector_bits: int) -> Value | None:
    """A gradient of weights: [channels, samples, ...] and [filters, samples, ...] of the image and the result."""
    x, g = op.operands
    (channels, samples), filters = sizes(x)[:2], sizes(g)[0]
    seen, of_result = (_images(n, samples, axes) for n in (channels, filters))
    if plan_gradient(seen, of_result, vector_bits) is None or not spend("winograd", op):
        return None
    flat = (1, 0, 2, 3)
    before, none = [axis.zeros_before for axis in axes], [0] * len(axes)
    image = _phases(emit("transpose", x, permutation=flat), before, [axis.image_size for axis in axes], axes)
    window = _phases(emit("transpose", g, permutation=flat), none, [axis.result_size for axis in axes], axes)
    return _convolution(emit("transpose", image, permutation=flat), emit("transpose", window, permutation=flat), axes)


def _images(channels: int, samples: int, axes: list[_Axis]) -> Images:
    """The phases as images, for the estimate of what minimal filtering costs."""
    high, wide = (axis.result_size for axis in axes)
    bounds = ((0, high), (0, wide))
    return Images(channels, samples * prod(axis.spread for axis in axes), high, wide, (0, 0, 0), bounds, None)


def _phases(x: Value, before: list[int], lengths: list[int], axes: list[_Axis]) -> Value:
    """[N, C, *sizes] as [N * phases, C, *lengths] in memory, with zeros before and behind."""
    n, channels, *size = sizes(x)
    spread = [axis.spread for axis in axes]
    behind = [m * d - s - b for m, d, s, b in zip(lengths, spread, size, before, strict=True)]
    zero = constant(0, TensorType((), x.dtype))
    padded = emit("pad", x, zero, low=(0, 0, *before), high=(0, 0, *behind), interior=(0,) * 4)
    apart = emit("reshape", padded, shape=(n, channels, lengths[0], spread[0], lengths[1], spread[1]))
    moved = emit("transpose", apart, permutation=(0, 3, 5, 1, 2, 4))
    made = emit("reshape", moved, shape=(n * prod(spread), channels, *lengths))
    builder = context().builder
    assert builder is not None
    return builder.create(KEPT, (made,), {}, (TensorType(sizes(made), x.dtype),)).result


def _convolution(x: Value, w: Value, axes: list[_Axis], groups: int = 1) -> Value:
    padding, ones = tuple(axis.padding for axis in axes), (1, 1)
    return emit(
        "conv", x, w, strides=ones, padding=padding, lhs_dilation=ones, rhs_dilation=ones, groups=groups,
    )  # fmt: skip


def _in_place(y: Value, samples: int, axes: list[_Axis]) -> Value:
    """[N * phases, O, *made] as [N, O, *places]."""
    filters, (high, wide) = sizes(y)[1], axes
    apart = emit("reshape", y, shape=(samples, high.spread, wide.spread, filters, high.result_size, wide.result_size))
    moved = emit("transpose", apart, permutation=(0, 3, 4, 1, 5, 2))
    whole = emit(
        "reshape", moved, shape=(samples, filters, high.result_size * high.spread, wide.result_size * wide.spread)
    )
    limit = (samples, filters, high.places, wide.places)
    return emit("slice", whole, start=(0,) * 4, limit=limit, stride=(1,) * 4)

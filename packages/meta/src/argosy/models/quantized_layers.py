"""Linear layers, tables of words and experts whose weights are integers, or numbers in e4m3, with scales.

A weight is ``number * scale + offset`` with a scale, and an offset or none, for each output and group of inputs. Inputs
are floats, or bytes with a scale for each row or for all: sums of their products with bytes are exact, in int32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

import argosy as paddle
from argosy import nn
from argosy.models.configuration import ExpertsConfig
from argosy.models.feedforward import Experts, gather_mm
from argosy.models.weights import file_name
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy.nn.quant import weight_only_linear
from argosy_infer.weights import pack_outputs, unpack_outputs

__all__ = [
    "E2M1",
    "InputBytes",
    "Numbers",
    "QuantizedEmbedding",
    "QuantizedExperts",
    "QuantizedLinear",
    "bits_of_e2m1",
    "expert_matrices",
    "layers_of",
    "linear_layers",
]

Array = np.ndarray[Any, Any]
Kind = TypeVar("Kind", bound=Layer)
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the numbers that four bits are in e2m1, of which the highest is the sign."""
_MIDDLE = 12
_BITS = np.zeros(25, np.int8)
"""The bits of a number plus 12."""
_BITS[E2M1[1:] + _MIDDLE] = np.arange(1, 16)
_BITS[_MIDDLE] = 0
_STEPS, _SMALLEST = 127.5, 1e-5
"""Steps of a row's largest magnitude, as compressed-tensors has them, and the least that counts as such."""


class QuantizedLinear(Layer):
    """A linear layer ``x @ (numbers * scales + offsets) + bias``: ``numbers`` [in, out] are integers less their
    middle, or in float8_e4m3fn.

    ``scales`` and ``offsets`` (None: none) are [groups, out] of inputs in ``order`` [in] (None: as they are);
    ``bias``: whether there is one. With inputs in bytes ``input_scale`` is theirs (None: each row has its own), and of
    those that are not symmetric ``input_zero`` (None, too) the byte that stands for 0.
    """

    def __init__(self, made: Numbers, bias: bool) -> None:
        super().__init__()
        size, out = made.numbers.shape
        self.groups = len(made.scales)
        self.bits, packed = made.bits, made.bits == 4 and not out % 2  # two to a byte
        in_integers = made.numbers.dtype == np.int8
        self.dtype_of_numbers = ("int4" if packed else "int8") if in_integers else made.numbers.dtype.name
        self.group_size = size // self.groups if self.groups > 1 else -1
        whole = np.ascontiguousarray(made.numbers.T)
        if packed:
            whole = pack_outputs(whole)
        scales = made.scales if self.groups > 1 else made.scales[0]
        self.register_buffer("numbers", paddle.to_tensor(whole))
        self.register_buffer("scales", paddle.to_tensor(np.ascontiguousarray(scales)))
        self.register_buffer("order", None if made.order is None else paddle.to_tensor(made.order.astype(np.int64)))
        self.zeros, offsets = made.zeros, made.all_offsets()
        shape = scales.shape
        self.register_buffer("offsets", None if offsets is None else paddle.to_tensor(offsets.reshape(shape)))
        self.bias = self.create_parameter([out], is_bias=True) if bias else None
        self.inputs, taken = made.inputs, made.inputs or InputBytes()
        self.register_buffer("input_scale", None if taken.scale is None else paddle.to_tensor(np.float32(taken.scale)))
        self.register_buffer("input_zero", None if taken.zero is None else paddle.to_tensor(np.int32(taken.zero)))
        is_plain = made.bits == 8 and self.groups == 1 and offsets is None and made.order is None
        sums = paddle.to_tensor(made.numbers.sum(0, dtype=np.int32)) if is_plain and not taken.symmetric else None
        self.register_buffer("sums", sums)  # what each step of inputs' zero takes from the outputs

    def forward(self, x: Any) -> Any:
        """The outputs [..., out] of ``x`` [..., in]."""
        if self.order is not None:
            x = paddle.index_select(x, self.order, axis=-1)
        if self.inputs is None:
            return self._multiply(x, self.bias)
        made = self._multiply_bytes(x)
        return (made if self.bias is None else made + self.bias.astype("float32")).astype(x.dtype)

    def _multiply(self, x: Any, bias: Any = None) -> Any:
        form = {"weight_dtype": self.dtype_of_numbers, "group_size": self.group_size, "weight_offset": self.offsets}
        return weight_only_linear(x, self.numbers, bias, self.scales, **form)

    def _multiply_bytes(self, x: Any) -> Any:
        """The outputs in float32, of inputs rounded to bytes. Those that are not symmetric are multiplied as the floats
        that they stand for, unless all inputs are one group of bytes."""
        assert self.inputs is not None
        spread, steps, zero = self.inputs.round(x.astype("float32"), self.input_scale, self.input_zero)
        if zero is None:
            return self._multiply(spread.astype("int8")) * steps
        if self.sums is None:
            return self._multiply((spread - zero.astype("float32")) * steps)
        sums = paddle.matmul(spread.astype("int8").astype("int32"), self.numbers.astype("int32"), transpose_y=True)
        return (sums - zero * self.sums).astype("float32") * steps * self.scales.astype("float32")

    def to_numbers(self) -> Numbers:
        """What the layer was made of."""
        order = None if self.order is None else self.order.numpy()
        packed = self.numbers.payload.array()
        whole = (unpack_outputs(packed) if self.dtype_of_numbers == "int4" else packed).T
        offsets = None
        if self.offsets is not None and self.zeros is None:
            offsets = np.atleast_2d(self.offsets.payload.array())
        scales = np.atleast_2d(self.scales.payload.array())
        return Numbers(whole, self.bits, scales, self.zeros, order, offsets, self.inputs)


class QuantizedEmbedding(QuantizedLinear):
    """A table of embeddings, the matrix [width, words] of a linear layer, which a tied head multiplies with.

    Rows are taken as numbers, and multiplied with their scales then. ``dtype`` is theirs.
    """

    def __init__(self, made: Numbers) -> None:
        super().__init__(made, bias=False)
        self.dtype = "float32"

    def forward(self, ids: Any) -> Any:
        """The rows [..., width] of ``ids``."""
        rows = self._take_numbers(ids).reshape([*ids.shape, self.groups, -1]).astype("float32")
        rows = rows * self._take_of_groups(ids, self.scales)
        if self.offsets is not None:
            rows = rows + self._take_of_groups(ids, self.offsets)
        return rows.flatten(-2).astype(self.dtype)

    def multiply(self, x: Any) -> Any:
        """The products [..., words] of ``x`` [..., width] with all rows."""
        return super().forward(x)

    def _take_numbers(self, ids: Any) -> Any:
        if self.dtype_of_numbers != "int4":
            return F.embedding(ids, self.numbers)
        half = self.numbers.shape[0]
        is_low = ids < half
        packed = F.embedding(paddle.where(is_low, ids, ids - half), self.numbers)
        return paddle.where(is_low.unsqueeze(-1), (packed << 4) >> 4, packed >> 4)

    def _take_of_groups(self, ids: Any, of_groups: Any) -> Any:
        """Of each row's groups their scale, or offset [..., groups, 1]."""
        table = of_groups.reshape([self.groups, -1]).transpose([1, 0])
        return F.embedding(ids, table).astype("float32").unsqueeze(-1)


@dataclass(frozen=True)
class InputBytes:
    """Inputs are rounded to bytes: steps of ``scale``, or of each row's own largest magnitude (None). Unless
    ``symmetric``, the byte ``zero`` stands for 0, or each row's own, so that its bytes go from least to largest."""

    scale: float | None = None
    symmetric: bool = True
    zero: int | None = None

    def round(self, x: Any, scale: Any, zero: Any) -> tuple[Any, Any, Any]:
        """``x`` [..., in] as whole numbers of bytes, their steps, both in float32, and the byte that stands for 0 in
        int32 (None: 0 does), by ``scale`` and ``zero`` where these are given."""
        steps, zero = (scale, zero) if scale is not None else self._of_rows(x)
        spread = x / steps if zero is None else x / steps + zero.astype("float32")
        return spread.round().clip(-128.0, 127.0), steps, zero

    def _of_rows(self, x: Any) -> tuple[Any, Any]:
        """The steps and zeros of rows, as compressed-tensors has them."""
        if self.symmetric:
            return x.abs().max(-1, keepdim=True).clip(min=_SMALLEST) / _STEPS, None
        low, high = x.min(-1, keepdim=True).clip(max=0.0), x.max(-1, keepdim=True).clip(min=0.0)
        steps = (high - low).clip(min=_SMALLEST) / (2 * _STEPS)
        return steps, (-128.0 - low / steps).round().clip(-128.0, 127.0).astype("int32")


@dataclass(frozen=True)
class Numbers:
    """Integers ``numbers`` [in, out] (int8, less the middle) of ``bits``, or numbers in e4m3; ``scales`` [groups, out],
    ``zeros`` [groups, out] less the middle (None: all are that), the input that each row belongs to (``order``,
    None: its own), and ``offsets`` [groups, out] that no zeros make; ``inputs``: what becomes of these (None: they stay
    floats). With ``is_e2m1`` numbers are those of ``E2M1``."""

    numbers: Array
    bits: int
    scales: Array
    zeros: Array | None = None
    order: Array | None = None
    offsets: Array | None = None
    inputs: InputBytes | None = None
    is_e2m1: bool = False

    def all_offsets(self) -> Array | None:
        """What is added to scaled numbers [groups, out], in float32; None for nothing."""
        if self.zeros is None:
            return self.offsets
        made: Array = -self.zeros.astype(np.float32) * self.scales.astype(np.float32)
        return made

    def dequantize(self) -> Array:
        """The matrix [in, out] in float32 that they stand for."""
        each = len(self.numbers) // len(self.scales)
        made = self.numbers.astype(np.float32) * np.repeat(self.scales.astype(np.float32), each, axis=0)
        offsets = self.all_offsets()
        if offsets is not None:
            made += np.repeat(offsets, each, axis=0)
        return made if self.order is None else made[np.argsort(self.order)]

    def take_outputs(self, outputs: slice) -> Numbers:
        """Those of some outputs."""
        zeros, offsets = (None if x is None else x[:, outputs] for x in (self.zeros, self.offsets))
        return replace(
            self, numbers=self.numbers[:, outputs], scales=self.scales[:, outputs], zeros=zeros, offsets=offsets
        )


class QuantizedExperts(Experts):
    """Experts whose matrices are numbers in eight bits, or in four, two to a byte, with a scale, and an offset or none,
    for each group of inputs and output. Inputs in bytes are summed in integers, but for those that are not symmetric,
    which are multiplied as the floats that they stand for.

    ``parts``: of each expert the gate, what is gated, and the way back. Raises NotImplementedError, naming ``where``,
    where experts differ in groups or in what becomes of inputs, or a gate has other inputs than what it gates: in
    another order, in other steps.
    """

    def __init__(self, floats: Experts, parts: list[list[Numbers]], where: str) -> None:
        Layer.__init__(self)
        self.config, self.zeros = floats.config, [[each.zeros for each in matrices] for matrices in parts]
        self.bits, self.width = [[each.bits for each in matrices] for matrices in parts], len(parts[0][0].numbers)
        self.inputs = [[each.inputs for each in matrices] for matrices in parts]
        self.is_e2m1 = parts[0][0].is_e2m1
        for name, members in (("gate_up_proj", slice(0, 2)), ("down_proj", slice(2, 3))):
            if len({tuple(each.scales.shape) for matrices in parts for each in matrices[members]}) > 1:
                raise NotImplementedError(f"{where} has groups of several sizes, which experts have no code for")
            joined = {
                "numbers": [np.concatenate([each.numbers.T for each in matrices[members]]) for matrices in parts],
                "scales": [np.concatenate([each.scales for each in matrices[members]], 1) for matrices in parts],
            }
            if any(each.all_offsets() is not None for matrices in parts for each in matrices[members]):
                joined["offsets"] = [
                    np.concatenate([_offsets_or_zeros(each) for each in matrices[members]], 1) for matrices in parts
                ]
            if orders := _orders_of(parts, members, where):
                joined["order"] = orders
            joined.update(_input_bytes_of(parts, members, where))
            if all(each.bits == 4 for matrices in parts for each in matrices[members]):
                joined["numbers"] = _packed(joined["numbers"], self.is_e2m1)
            for part, arrays in joined.items():
                self.register_buffer(f"{name}_{part}", paddle.to_tensor(np.stack(arrays)))
            if floats.config.bias:
                setattr(self, f"{name}_bias", getattr(floats, f"{name}_bias"))

    def to_numbers(self) -> list[list[Numbers]]:
        """What the layer was made of."""
        width = self.config.width
        places = (("gate_up_proj", slice(0, width)), ("gate_up_proj", slice(width, None)), ("down_proj", slice(None)))
        return [
            [
                replace(self._part(expert, *place, zeros[i], self.bits[expert][i]), inputs=self.inputs[expert][i])
                for i, place in enumerate(places)
            ]
            for expert, zeros in enumerate(self.zeros)
        ]

    def _part(self, expert: int, name: str, outputs: slice, zeros: Array | None, bits: int) -> Numbers:
        numbers, scales = (getattr(self, f"{name}_{part}").payload.array()[expert] for part in ("numbers", "scales"))
        if len(numbers) < scales.shape[1]:
            numbers = unpack_outputs(numbers)
            numbers = E2M1[numbers & 15] if self.is_e2m1 else numbers
        orders = getattr(self, f"{name}_order", None)
        order = None if orders is None else orders.numpy()[expert]
        made = Numbers(numbers[outputs].T, bits, scales[:, outputs], zeros, order)
        return replace(made, is_e2m1=self.is_e2m1)

    def _multiply(self, x: Any, experts_NC: Any, name: str) -> Any:
        numbers, scales = getattr(self, f"{name}_numbers"), getattr(self, f"{name}_scales")
        bias, offsets = getattr(self, f"{name}_bias", None), getattr(self, f"{name}_offsets", None)
        if numbers.shape[1] < scales.shape[2]:
            halves = [(numbers << 4) >> 4, numbers >> 4]
            numbers = paddle.concat([_twice_e2m1(x) for x in halves] if self.is_e2m1 else halves, axis=1)
        if (order := getattr(self, f"{name}_order", None)) is not None:
            places = zip(x.unbind(1), order[experts_NC].unbind(1), strict=True)
            x = paddle.stack([paddle.index_sample(one, rows) for one, rows in places], axis=1)
        form = {"weight": numbers.transpose([0, 2, 1]), "scale": scales, "offset": offsets}
        taken = self.inputs[0][2 if name == "down_proj" else 0]
        if taken is None:
            return gather_mm(x, experts_NC, bias=None if bias is None else bias.astype(x.dtype), **form)
        scale, zero = (getattr(self, f"{name}_input_{part}", None) for part in ("scale", "zero"))
        scale, zero = (None if part is None else part[experts_NC].unsqueeze(-1) for part in (scale, zero))
        spread, steps, zero = taken.round(x.astype("float32"), scale, zero)
        if zero is None:
            made = gather_mm(spread.astype("int8"), experts_NC, **form) * steps
        else:
            made = gather_mm((spread - zero.astype("float32")) * steps, experts_NC, **form)
        return (made if bias is None else made + bias.astype("float32")[experts_NC]).astype(x.dtype)


def _orders_of(parts: list[list[Numbers]], members: slice, where: str) -> list[Array]:
    """The inputs of the rows of each expert's matrices, which lie side by side; none where all are as they are."""
    orders = []
    for matrices in parts:
        first, *others = [
            np.arange(len(each.numbers)) if each.order is None else each.order for each in matrices[members]
        ]
        if not all(np.array_equal(first, other) for other in others):
            raise NotImplementedError(f"{where}: a gate has inputs in another order than what it gates")
        orders.append(first.astype(np.int64))
    return orders if any(each.order is not None for matrices in parts for each in matrices[members]) else []


def _input_bytes_of(parts: list[list[Numbers]], members: slice, where: str) -> dict[str, list[Any]]:
    """The steps and zeros of each expert's inputs in bytes that a file fixes."""
    taken = [[each.inputs for each in matrices[members]] for matrices in parts]
    forms = {one and (one.scale is None, one.symmetric, one.zero is None) for matrices in taken for one in matrices}
    if len(forms) > 1 or any(one != matrices[0] for matrices in taken for one in matrices):
        raise NotImplementedError(f"{where}: inputs of its matrices are rounded in several ways")
    given = [matrices[0] for matrices in taken if matrices[0] is not None]
    scales = [np.float32(one.scale) for one in given if one.scale is not None]
    zeros = [np.int32(one.zero) for one in given if one.zero is not None]
    return ({"input_scale": scales} if scales else {}) | ({"input_zero": zeros} if zeros else {})


def _packed(matrices: list[Array], is_e2m1: bool) -> list[Array]:
    """Numbers of four bits [out, in] two to a byte, where that is possible."""
    if len(matrices[0]) % 2:
        return matrices
    return [pack_outputs(bits_of_e2m1(each) if is_e2m1 else each) for each in matrices]


def bits_of_e2m1(numbers: Array) -> Array:
    """The four bits of each of ``numbers`` of ``E2M1``, in int8."""
    bits: Array = _BITS[numbers + _MIDDLE]
    return bits


def _twice_e2m1(bits: Any) -> Any:
    """The numbers of ``E2M1`` by four bits that are widened with their sign."""
    place = bits & 7
    magnitude = place + (place - 4).clip(min=0) + 2 * (place - 6).clip(min=0)
    return paddle.where(bits < 0, -magnitude, magnitude)


def _offsets_or_zeros(made: Numbers) -> Array:
    offsets = made.all_offsets()
    return np.zeros(made.scales.shape, np.float32) if offsets is None else offsets


def expert_matrices(
    name: str, config: ExpertsConfig, width: int, family: ModuleType
) -> list[list[tuple[str, int, int]]]:
    """Names in a file, inputs and outputs of the matrices of each expert: its gate, what is gated, the way back."""
    shapes = {name: (width, config.width) for name in ("gate_proj", "up_proj")} | {"down_proj": (config.width, width)}
    return [
        [
            (file_name(f"{name}.{expert}.{member}.weight", family).removesuffix(".weight"), *shape)
            for member, shape in shapes.items()
        ]
        for expert in range(config.experts)
    ]


def layers_of(model: Layer, kind: type[Kind]) -> Iterator[tuple[Layer, str, str, Kind]]:
    """The layers of a kind with their parents, attributes and full names."""
    owners = dict(model.named_sublayers(include_self=True))
    for name, layer in list(owners.items()):
        if isinstance(layer, kind):
            prefix, _, attribute = name.rpartition(".")
            yield owners[prefix], attribute, name, layer


def linear_layers(model: Layer) -> Iterator[tuple[Layer, str, str, nn.Linear]]:
    """The linear layers."""
    return layers_of(model, nn.Linear)

"""Folders whose linear layers are integers with scales: GPTQ (both versions, act-order), AWQ and compressed-tensors;
GGUF's blocks; numbers of eight bits (e4m3) with a scale for each block, as DeepSeek-V3
is published; and experts in four bits (mxfp4), as gpt-oss is.

Their bits are laid out again as `weight_only_linear` reads them, integers to integers; no float weight is ever made. A
weight is ``(number - zero) * scale`` with a zero and a scale for each output and group of inputs. Numbers are kept less
their middle (8 or 128), which is the zero of symmetric files; other zeros make a group's offset, ``-zero * scale``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from argosy.models.configuration import ConfigFile
from argosy.models.decoder import TokenEmbedding
from argosy.models.feedforward import Experts
from argosy.models.quantized_layers import (
    E2M1,
    InputBytes,
    Numbers,
    QuantizedEmbedding,
    QuantizedExperts,
    QuantizedLinear,
    expert_matrices,
    layers_of,
    linear_layers,
)
from argosy.models.weights import TensorNames, file_name
from argosy.nn.layer import Layer
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.wait_notice import count_steps

__all__ = ["AWQ_ORDER", "place_in_file", "quantize_layers"]

Array = np.ndarray[Any, Any]
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""The output that the four bits at each place of an int32 belong to (Lin et al.'s GEMM layout)."""
_GROUPS = (16, 32, 64, 128)
_WHOLE = {"int-quantized": "int8", "float-quantized": "float8_e4m3fn"}
"""Formats of compressed-tensors whose numbers are bytes."""
_REPETITIONS = 3
"""Of a pattern of layers' names."""


def quantize_layers(
    model: Layer, family: ModuleType, config: ConfigFile, files: Mapping[str, Any], where: str
) -> Mapping[str, Any]:
    """Put quantised layers in the place of linear ones whose integers ``files`` hold; returns the other tensors.

    Raises ConfigurationError for a method that is not known, NotImplementedError for one without code and for matrices
    that are no linear layer of their own, CheckpointError naming the tensor that is missing or has another shape.
    """
    if "quantization_config" not in config:
        return files
    settings = config.table("quantization_config")
    method = settings.text("quant_method")
    if method not in _READERS:
        raise settings.error("quant_method", f"one of {', '.join(_READERS)}", method)
    read = _MatrixReader(_READERS[method](settings), TensorNames(files), family, where)
    read.use_linear_layers(model)
    read.use_tables(model)
    read.use_experts(model)
    mark = f".{read.format.mark}"
    left = [name for name in files if name not in read.used and name.endswith(mark)]
    if left:
        raise NotImplementedError(f"{where}: {left[0]} is of no linear layer, and of no expert of its own")
    return {name: files[name] for name in files if name not in read.used}


class _MatrixReader:
    """Reads matrices of files by their names; ``used`` are the tensors that made them."""

    def __init__(self, format: Any, known: TensorNames, family: ModuleType, where: str) -> None:
        self.format, self.known, self.family, self.where = format, known, family, where
        self.used: set[str] = set()

    def __call__(self, base: str, size: int, out: int, kind: str = "Linear") -> Numbers | None:
        """The matrix [size, out] of that name; None where the files hold floats."""
        if self.known.find(f"{base}.{self.format.mark}") is None:
            return None
        part = _Part(self.known, base, size, out, self.where, kind)
        made: Numbers = self.format.read(part)
        self.used.update(part.used)
        return made

    def use_linear_layers(self, model: Layer) -> None:
        """Put linear layers of integers in the place of those of floats."""
        shapes = {name: [int(n) for n in layer.weight.shape] for _, _, name, layer in linear_layers(model)}
        for parent, attribute, name, layer in count_steps(list(linear_layers(model)), "layers"):
            base, out, columns = place_in_file(name, shapes, self.family)
            made = self(base, shapes[name][0], out)
            if made is not None:
                setattr(parent, attribute, QuantizedLinear(made.take_outputs(columns), layer.bias is not None))

    def use_tables(self, model: Layer) -> None:
        """The same of tables of words."""
        for parent, attribute, name, table in layers_of(model, TokenEmbedding):
            words, width = (int(n) for n in table.weight.shape)
            base = file_name(f"{name}.weight", self.family).removesuffix(".weight")
            made = self(base, width, words, "Embedding")
            if made is None:
                continue
            if made.order is not None or made.inputs is not None:
                raise NotImplementedError(f"{self.where}: {base} has inputs in another order, or in bytes")
            setattr(parent, attribute, QuantizedEmbedding(made))

    def use_experts(self, model: Layer) -> None:
        """The same of experts, of which all matrices are integers or none."""
        for parent, attribute, name, experts in count_steps(list(layers_of(model, Experts)), "layers of experts"):
            width = int(experts.down_proj.shape[-1])
            if isinstance(self.format, _Mxfp4):
                part = _Part(self.known, file_name(name, self.family), width, experts.config.width, self.where)
                parts = self.format.read_experts(part, experts.config.experts)
                self.used.update(part.used)
            else:
                names = expert_matrices(name, experts.config, width, self.family)
                parts = [[self(*each) for each in matrices] for matrices in names]
            whole = [[made for made in matrices if made is not None] for matrices in parts]
            if [len(matrices) for matrices in whole] == [len(matrices) for matrices in parts]:
                setattr(parent, attribute, QuantizedExperts(experts, whole, f"{self.where}: {name}"))


def place_in_file(name: str, shapes: Mapping[str, list[int]], family: ModuleType) -> tuple[str, int, slice]:
    """The name of a layer's matrix in a file, how many outputs that has, and which of them are the layer's."""
    for pattern, replacement, members in getattr(family, "STACKED", ()):
        match = re.search(pattern, f"{name}.weight")
        if match:
            widths = [shapes[f"{name[: match.start(1)]}{each}{name[match.end(1) :]}"][1] for each in members]
            place = members.index(match[1])
            stored = file_name(re.sub(pattern, replacement, f"{name}.weight"), family).removesuffix(".weight")
            return stored, sum(widths), slice(sum(widths[:place]), sum(widths[: place + 1]))
    return file_name(f"{name}.weight", family).removesuffix(".weight"), shapes[name][1], slice(None)


class _Part:
    """The tensors of one layer, of a ``kind``, in a file."""

    def __init__(self, known: TensorNames, base: str, size: int, out: int, where: str, kind: str = "Linear") -> None:
        self.known, self.base, self.size, self.out, self.where, self.kind = known, base, size, out, where, kind
        self.used: set[str] = set()

    def has(self, name: str) -> bool:
        return self.known.find(f"{self.base}.{name}") is not None

    def tensor(self, name: str, *shape: int) -> Array:
        """A tensor of the layer. Raises CheckpointError where it is missing or has another shape."""
        found = self.known.find(f"{self.base}.{name}")
        if found is None:
            raise CheckpointError(f"{self.where}: {self.base}.{name} is missing, beside its integers")
        self.used.add(found)
        array: Array = self.known.files[found]
        if array.shape != shape:
            raise CheckpointError(f"{self.where}: {found} has shape {list(array.shape)}; expected {list(shape)}")
        return array

    def words(self, name: str, *shape: int) -> Array:
        """The same of words of 32 bits that numbers are packed in."""
        array = self.tensor(name, *shape)
        if array.dtype not in (np.int32, np.uint32):
            raise CheckpointError(f"{self.where}: {self.base}.{name} is {array.dtype}; expected int32")
        return array

    def groups(self, group_size: int) -> int:
        """How many groups there are."""
        size = self.size if group_size == -1 else group_size
        if (size != self.size and size not in _GROUPS) or self.size % size or self.out % 8:
            raise CheckpointError(
                f"{self.where}: {self.base} [{self.size}, {self.out}] in groups of {group_size}: expected groups of "
                f"{', '.join(map(str, _GROUPS))} or -1 that divide the inputs, and a multiple of 8 outputs"
            )
        return self.size // size


def _unpack(words: Array, bits: int, axis: int) -> Array:
    """The unsigned numbers in int32, the lowest bits first, along an axis."""
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    spread = np.ascontiguousarray(np.moveaxis(words, axis, -1)).view(np.uint32)
    made = ((spread[..., None] >> shifts) & ((1 << bits) - 1)).astype(np.uint8)
    return np.moveaxis(made.reshape(*spread.shape[:-1], -1), -1, axis)


def _centre(numbers: Array, bits: int) -> Array:
    """Unsigned numbers less their middle, as int8."""
    return (numbers.astype(np.int16) - (1 << (bits - 1))).astype(np.int8)


def _zeros(numbers: Array, bits: int) -> Array | None:
    """Zeros less the middle; None where all are that."""
    made = numbers.astype(np.int32) - (1 << (bits - 1))
    return made if made.any() else None


def _order_rows(numbers: Array, groups_of: Array, groups: int, part: _Part) -> tuple[Array, Array | None]:
    """Rows by the group that each belongs to, and the input of each row; None where they are in order."""
    order = np.argsort(groups_of, kind="stable")
    expected = np.repeat(np.arange(groups), len(numbers) // groups)
    if not np.array_equal(groups_of[order], expected):
        raise CheckpointError(
            f"{part.where}: {part.base}.g_idx should have {len(numbers) // groups} inputs of each group"
        )
    return (numbers, None) if np.array_equal(order, np.arange(len(order))) else (numbers[order], order)


class _Gptq:
    """qweight [in * bits / 32, out], qzeros [groups, out * bits / 32], scales [groups, out], g_idx [in]. The first
    version stores zeros less one. ``dynamic`` has patterns of the layers that have bits or groups of their own."""

    mark = "qweight"

    def __init__(self, settings: ConfigFile) -> None:
        self.shift = 0 if settings.text("checkpoint_format", default="gptq") == "gptq_v2" else 1
        self.form, self.forms = self._form(settings, settings), []
        if settings.optional("dynamic"):
            own = settings.table("dynamic")  # a pattern that begins with "-:" is of layers in floats
            self.forms = [(f"re:{key.removeprefix('+:')}", self._form(own.table(key), settings)) for key in own.values]

    @staticmethod
    def _form(own: ConfigFile, common: ConfigFile) -> tuple[int, int]:
        """The bits of a layer's numbers, and inputs of a group."""
        bits = (own if "bits" in own else common).integer("bits")
        if bits not in (4, 8):
            raise own.error("bits", "4 or 8", bits)
        return bits, (own if "group_size" in own else common).integer("group_size", default=-1, least=-1)

    def read(self, part: _Part) -> Numbers:
        bits, group_size = next((form for pattern, form in self.forms if _matches(pattern, part.base)), self.form)
        groups, each = part.groups(group_size), 32 // bits
        numbers = _centre(_unpack(part.words("qweight", part.size // each, part.out), bits, 0), bits)
        zeros = _unpack(part.words("qzeros", groups, part.out // each), bits, 1)
        scales, order = part.tensor("scales", groups, part.out), None
        if part.has("g_idx"):
            numbers, order = _order_rows(numbers, part.tensor("g_idx", part.size), groups, part)
        return Numbers(numbers, bits, scales, _zeros(zeros.astype(np.int32) + self.shift, bits), order)


class _Awq:
    """qweight [in, out / 8], qzeros [groups, out / 8], scales [groups, out]; outputs interleaved."""

    mark = "qweight"

    def __init__(self, settings: ConfigFile) -> None:
        self.group_size = settings.integer("group_size", "q_group_size", default=128, least=-1)
        if settings.integer("bits", "w_bit") != 4 or settings.text("version", default="gemm").lower() != "gemm":
            raise NotImplementedError(f"{settings.path}: AWQ is implemented in four bits, version gemm")

    def read(self, part: _Part) -> Numbers:
        groups = part.groups(self.group_size)
        numbers = self._outputs(part.words("qweight", part.size, part.out // 8))
        zeros = self._outputs(part.words("qzeros", groups, part.out // 8))
        return Numbers(_centre(numbers, 4), 4, part.tensor("scales", groups, part.out), _zeros(zeros, 4))

    def _outputs(self, words: Array) -> Array:
        made = _unpack(words, 4, 1).reshape(len(words), -1, 8)
        return made[..., np.argsort(AWQ_ORDER)].reshape(len(words), -1)


class _CompressedTensors:
    """weight_packed [out, in * bits / 32], weight_scale [out, groups], weight_zero_point [out * bits / 32, groups] if
    the file is not symmetric, weight_g_idx [in]; the middle is added to numbers. Of the other formats weight [out, in]
    in int8, whose numbers may be of four bits, or e4m3, weight_scale [out, groups], of one group also [1], and
    weight_zero_point [out, groups] of int8. Inputs of integers are bytes where ``input_activations`` says so,
    with a scale for each row, or one in input_scale [1] and, where they are not symmetric, input_zero_point [1]; others
    stay floats, whatever is said of them. Groups of layers may have a format each (``mixed-precision``)."""

    def __init__(self, settings: ConfigFile) -> None:
        groups = settings.table("config_groups")
        self._settings, self._forms = settings, [groups.table(name) for name in groups.values]
        formats = {self._format_of(each) for each in self._forms}
        self.mark = "weight_packed" if formats == {"pack-quantized"} else "weight_scale"
        for each in self._forms:
            weights = each.table("weights")
            if weights.integer("num_bits") not in (4, 8):
                raise weights.error("num_bits", "4 or 8", weights.integer("num_bits"))
            if not isinstance(each.optional("targets"), list):
                raise each.error("targets", "a list of layers' names and classes", each.optional("targets"))

    def _format_of(self, group: ConfigFile) -> str:
        """The format of a group of layers: its own, or that of all."""
        common = self._settings.text("format")
        own = common if group.optional("format") is None else group.text("format")
        if own != "pack-quantized" and own not in _WHOLE:
            known = ", ".join(("pack-quantized", *_WHOLE))
            raise NotImplementedError(f"{group.path}: format {own!r} is not implemented; there are {known}")
        return own

    def _group_of(self, base: str, kind: str) -> ConfigFile:
        """The group of a layer: that which names it, by a pattern, or its class."""
        for named in (lambda target: target == base, lambda target: _matches(target, base), kind.__eq__):
            for each in self._forms:
                if any(named(target) for target in each.optional("targets")):
                    return each
        raise self._settings.error("config_groups", f"groups of which one names {base}", "none")

    def read(self, part: _Part) -> Numbers:
        group = self._group_of(part.base, part.kind)
        weights = group.table("weights")
        inputs, form = group.table("input_activations"), self._format_of(group)
        taken = self._inputs(part, inputs) if form != "float-quantized" and inputs.values else None
        if form in _WHOLE:
            return replace(self._read_whole(part, weights, form), inputs=taken)
        bits = weights.integer("num_bits")
        groups, each = part.groups(weights.integer("group_size", default=-1, least=-1)), 32 // bits
        numbers = _centre(_unpack(part.words("weight_packed", part.out, part.size // each), bits, 1), bits).T
        scales, zeros, order = part.tensor("weight_scale", part.out, groups).T, None, None
        if not weights.flag("symmetric", default=True):
            packed = part.words("weight_zero_point", part.out // each, groups)
            zeros = _zeros(_unpack(packed, bits, 0).T, bits)
        if part.has("weight_shape"):
            part.tensor("weight_shape", 2)
        if part.has("weight_g_idx"):
            numbers, order = _order_rows(numbers, part.tensor("weight_g_idx", part.size), groups, part)
        return Numbers(numbers, bits, scales, zeros, order, inputs=taken)

    @staticmethod
    def _read_whole(part: _Part, weights: ConfigFile, form: str) -> Numbers:
        """A matrix whose numbers are bytes, with one scale for all outputs, one for each, or of integers one for each
        group of inputs, too."""
        numbers, strategy = part.tensor("weight", part.out, part.size), weights.text("strategy", default="channel")
        symmetric, bits, in_integers = weights.flag("symmetric", default=True), 8, form == "int-quantized"
        if numbers.dtype.name != _WHOLE[form] or not (symmetric or in_integers):
            raise NotImplementedError(
                f"{part.where}: {part.base}.weight is {numbers.dtype}; {form} is read as "
                f"{'' if in_integers else 'symmetric '}{_WHOLE[form]}"
            )
        known = ("channel", "tensor", "group") if in_integers else ("channel", "tensor")
        if strategy not in known:
            raise NotImplementedError(f"{weights.path}: strategy {strategy!r} of {form}; there are {', '.join(known)}")
        if in_integers and (bits := weights.integer("num_bits")) == 4 and not _fits(numbers, 4):
            raise CheckpointError(f"{part.where}: {part.base}.weight has numbers that are none of four bits")
        for unused in ("input_scale", "input_zero_point"):
            if part.has(unused):
                part.used.add(f"{part.base}.{unused}")
        size = weights.integer("group_size") if strategy == "group" else -1
        groups = part.groups(size) if strategy == "group" or bits == 4 else 1
        of_all = groups == 1 and tuple(part.known.shape(f"{part.base}.weight_scale")) == (1,)
        scales = part.tensor("weight_scale", *((1,) if of_all else (part.out, groups)))
        scales, zeros = np.broadcast_to(scales.reshape(-1, groups).T, (groups, part.out)), None
        if not symmetric:
            stored = part.tensor("weight_zero_point", *((1,) if of_all else (part.out, groups)))
            if not _fits(stored, 8):
                raise CheckpointError(f"{part.where}: {part.base}.weight_zero_point has numbers that are no bytes")
            stored = np.broadcast_to(stored.reshape(-1, groups).T.astype(np.int32), scales.shape)
            zeros = stored if stored.any() else None
        return Numbers(numbers.T, bits, scales, zeros)

    @staticmethod
    def _inputs(part: _Part, inputs: ConfigFile) -> InputBytes:
        """How inputs become bytes. Raises NotImplementedError for what is no scale of each row, or of all."""
        dynamic, strategy = inputs.flag("dynamic", default=False), inputs.text("strategy", default="tensor")
        if inputs.integer("num_bits", default=8) != 8 or inputs.text("type", default="int") != "int":
            raise NotImplementedError(f"{inputs.path}: inputs are bytes in int8, nothing else is implemented")
        if (dynamic, strategy) not in ((True, "token"), (False, "tensor")):
            raise NotImplementedError(
                f"{inputs.path}: strategy {strategy!r}, dynamic {dynamic}; there are 'token', which is dynamic, and "
                "'tensor', which is not"
            )
        symmetric = inputs.flag("symmetric", default=True)
        if dynamic:
            return InputBytes(symmetric=symmetric)
        zero = None if symmetric else int(part.tensor("input_zero_point", 1)[0])
        if zero is not None and not -128 <= zero <= 127:
            raise CheckpointError(f"{part.where}: {part.base}.input_zero_point is {zero}, which is no byte")
        return InputBytes(float(part.tensor("input_scale", 1)[0]), symmetric, zero)


def _fits(numbers: Array, bits: int) -> bool:
    """Whether whole numbers are of so many bits."""
    half = 1 << (bits - 1)
    return bool(numbers.dtype.kind == "i" and (-half <= numbers).all() and (numbers < half).all())


def _matches(target: Any, base: str) -> bool:
    """Whether a target ``re:PATTERN`` is of a layer. Patterns that could take long are not tried."""
    if not isinstance(target, str) or not target.startswith("re:"):
        return False
    if re.search(r"\)[*+?{]", target) or len(re.findall(r"[*+?{]", target)) > _REPETITIONS:
        raise NotImplementedError(f"targets with repeated groups, or many repetitions: {target!r:.80}")
    try:
        return re.match(target[3:], base) is not None
    except re.error as error:
        raise CheckpointError(f"{target!r:.80} is no pattern of layers' names: {error}") from None


class _Float8:
    """weight [out, in] in e4m3, weight_scale_inv [out / 128, in / 128]: what blocks are multiplied with."""

    mark = "weight_scale_inv"

    def __init__(self, settings: ConfigFile) -> None:
        if settings.text("fmt", default="e4m3") != "e4m3":
            raise NotImplementedError(f"{settings.path}: fp8 is implemented as e4m3")
        block = settings.optional("weight_block_size")
        if block != [128, 128]:
            raise NotImplementedError(f"{settings.path}: blocks of {block} are not implemented; there are [128, 128]")

    def read(self, part: _Part) -> Numbers:
        groups, blocks = part.groups(128), -(-part.out // 128)
        scales = np.repeat(part.tensor("weight_scale_inv", blocks, groups), 128, axis=0)[: part.out]
        weight = part.tensor("weight", part.out, part.size)
        if weight.dtype.name != "float8_e4m3fn":
            raise CheckpointError(f"{part.where}: {part.base}.weight is {weight.dtype}; expected float8_e4m3fn")
        return Numbers(weight.T, 8, scales.T.astype(np.float32))


class _Mxfp4:
    """Experts in one tensor (OCP Microscaling Formats, 2023): gate_up_proj_blocks [experts, 2 * width, in / 32, 16],
    two numbers (e2m1) in a byte, the first in its low half, rows of gates and ups alternating; gate_up_proj_scales of
    the first three axes, exponents of two with 127 added; and down_proj_ of both. Twice such a number is an integer;
    scales are kept in bfloat16, which has all powers of two that occur."""

    mark = "gate_up_proj_blocks"

    def __init__(self, settings: ConfigFile) -> None:
        pass

    def read(self, part: _Part) -> Numbers:
        raise NotImplementedError(f"{part.where}: {part.base} is in mxfp4, which experts alone are")

    def read_experts(self, part: _Part, experts: int) -> list[list[Numbers | None]]:
        """Of each expert the gate, what is gated, and the way back; ``part.size`` and ``out``: the model's width and
        the experts'."""
        if not part.has(self.mark) and not part.has("gate_up_proj_scales"):
            return [[None] * 3]
        numbers, scales = self._matrices(part, "gate_up_proj", experts, 2 * part.out, part.size)
        back, scales_back = self._matrices(part, "down_proj", experts, part.size, part.out)
        return [
            [
                *(Numbers(numbers[e, i::2].T, 4, scales[e, i::2].T, is_e2m1=True) for i in range(2)),
                Numbers(back[e].T, 4, scales_back[e].T, is_e2m1=True),
            ]
            for e in range(experts)
        ]

    def _matrices(self, part: _Part, name: str, experts: int, out: int, size: int) -> tuple[Array, Array]:
        """Integers [experts, out, size] and what groups of 32 are multiplied with."""
        if size % 32:
            raise CheckpointError(f"{part.where}: {part.base}.{name} has {size} inputs, expected a multiple of 32")
        blocks = part.tensor(f"{name}_blocks", experts, out, size // 32, 16)
        exponents = part.tensor(f"{name}_scales", experts, out, size // 32)
        for array, of in ((blocks, "blocks"), (exponents, "scales")):
            if array.dtype != np.uint8:
                raise CheckpointError(f"{part.where}: {part.base}.{name}_{of} is {array.dtype}; expected uint8")
        if exponents.size and exponents.max() == 255:
            raise CheckpointError(f"{part.where}: {part.base}.{name}_scales has 255, which is no number")
        numbers = E2M1[np.stack([blocks & 15, blocks >> 4], -1)].reshape(experts, out, size)
        return numbers, np.ldexp(np.float32(1), exponents.astype(np.int32) - 128).astype(as_dtype("bfloat16").numpy)


class _Gguf:
    """numbers [out, in], scales and offsets (where there are any) [out, groups], and their form: bits, and inputs of a
    group; as `argosy.models.gguf_blocks` makes them."""

    mark = "numbers"

    def __init__(self, settings: ConfigFile) -> None:
        pass

    def read(self, part: _Part) -> Numbers:
        bits, group_size = (int(n) for n in part.tensor("form", 2))
        groups = part.size // group_size  # rows are whole blocks
        scales, numbers = part.tensor("scales", part.out, groups).T, part.tensor("numbers", part.out, part.size).T
        offsets = part.tensor("offsets", part.out, groups).T if part.has("offsets") else None
        return Numbers(numbers, bits, np.ascontiguousarray(scales), offsets=offsets)


_READERS: dict[str, Any] = {
    "gptq": _Gptq, "awq": _Awq, "compressed-tensors": _CompressedTensors, "fp8": _Float8, "gguf": _Gguf,
    "mxfp4": _Mxfp4,
}  # fmt: skip

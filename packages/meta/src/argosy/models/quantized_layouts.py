"""Integer weights as other tools lay them out: GPTQ, AWQ and compressed-tensors, DeepSeek's blocks of e4m3, and experts
in mxfp4, as gpt-oss has them.

`quantized_weights` reads what is written here, and transformers 5.24 does: compressed-tensors with its package 0.20,
which has given up inputs in another order (``actorder``), GPTQ and AWQ with GPTQModel 7.7, where ``lm_head`` is in
floats. Layers of other bits and groups than the others are named in folders of compressed-tensors and of GPTQ
(``dynamic``, of GPTQModel); in other layouts all of them have the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from argosy import nn
from argosy.models.feedforward import Experts, Router
from argosy.models.quantized_layers import (
    InputBytes,
    Numbers,
    QuantizedEmbedding,
    QuantizedExperts,
    QuantizedLinear,
    bits_of_e2m1,
    expert_matrices,
    layers_of,
    linear_layers,
)
from argosy.models.quantized_weights import AWQ_ORDER
from argosy.models.weights import file_name
from argosy.nn.layer import Layer
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import unpack_outputs
from argosy_tensorcore.storage import StridedArray

__all__ = ["LAYOUTS", "integer_matrices", "pack_layers", "use_integers"]

Array = np.ndarray[Any, Any]
Packed = dict[str, Array]
Layout = Callable[[Numbers], Packed]


def use_integers(model: Layer, compressed: LoadedProgram) -> None:
    """Give ``model`` the integer weights of ``compressed``, its own program after a pass of `argosy_infer.compress`,
    and what that pass has changed besides: it computes the same then, and :func:`~argosy.models.save` writes it in the
    layouts of other tools.

    Raises NotImplementedError for inputs that the pass multiplies when the program runs (AWQ and SmoothQuant do, where
    nothing takes factors: ``multiply_inputs=False`` leaves these alone), which no layout holds, ValueError for a
    program that holds none of the model's weights as integers.
    """
    states, found = compressed.states, list[tuple[Layer, str, Layer]]()
    users = {state.name: state.argument.users for state in compressed.program.states}
    for parent, attribute, name, layer in list(linear_layers(model)):
        packed = states.get(f"{name}.weight.bytes")
        if packed is None:
            continue
        if f"{name}.weight.factors" in states:
            _refuse_factors(name)
        out, step, inputs = int(layer.weight.shape[1]), states.get(f"{name}.weight.step"), None
        made = _numbers_of(name, out, states)
        products = [user for user in users[f"{name}.weight.bytes"] if user.name == "phi.weight_only_linear"]
        if any(product.operand(0).dtype == "int8" for product in products):
            inputs = InputBytes(None if step is None else float(step))
        made = replace(made, inputs=inputs)
        fresh = QuantizedLinear(made, layer.bias is not None)
        fresh.bias = layer.bias
        found.append((parent, attribute, fresh))
    for parent, attribute, name, experts in list(layers_of(model, Experts)):
        if parts := _parts_of_experts(name, experts, states, users):
            found.append((parent, attribute, QuantizedExperts(experts, parts, name)))
    if not found:
        raise ValueError("use_integers(): the program holds no weight of a linear layer of the model as integers")
    for parent, attribute, new in found:
        setattr(parent, attribute, new)
    _take_floats(model, states)


def _take_floats(model: Layer, states: Mapping[str, Any]) -> None:
    """Give ``model`` the floats of a program after a pass."""
    for _, _, name, router in layers_of(model, Router):
        if f"{name}.weight.bytes" in states:  # layouts have routers in floats
            made = _numbers_of(name, int(router.weight.shape[1]), states).dequantize()
            made *= states.get(f"{name}.weight.factors", np.float32(1)).reshape(-1, 1)
            router.weight.set_value(made.astype(router.weight.numpy().dtype))
    for name, parameter in model.named_parameters():
        if name in states:  # a norm that has taken factors, a bias
            parameter.payload = StridedArray.from_array(states[name])


def _numbers_of(name: str, out: int, states: Mapping[str, Any]) -> Numbers:
    """The numbers of a layer that a pass has rounded."""
    packed, order = states[f"{name}.weight.bytes"], states.get(f"{name}.weight.order")
    bits = 4 if packed.shape[0] != out else 8
    numbers = unpack_outputs(packed) if bits == 4 else packed
    return Numbers(numbers.T, bits, np.atleast_2d(states[f"{name}.weight.scales"]), None, order)


def _input_bytes_of(name: str, users: Mapping[str, Any], states: Mapping[str, Any]) -> InputBytes | None:
    """What becomes of the inputs of experts' matrices. Raises NotImplementedError for inputs that are multiplied."""
    if f"{name}_factors" in states:
        _refuse_factors(name)
    (product,) = (user for user in users[f"{name}_scales"] if user.name != "builtin.return")
    step = states.get(f"{name}_step")
    in_bytes = product.operand(0).dtype == "int8"
    return InputBytes(None if step is None else float(step)) if in_bytes else None


def _refuse_factors(name: str) -> None:
    raise NotImplementedError(
        f"use_integers(): inputs of {name} are multiplied first, which no layout holds; the pass leaves them alone "
        "with multiply_inputs=False"
    )


def _parts_of_experts(
    name: str, experts: Experts, states: Mapping[str, Any], users: Mapping[str, Any]
) -> list[list[Numbers]]:
    """The gate, what is gated, and the way back of each expert; none where they are floats."""
    packed = [states[key] for own in ("gate_up_proj", "down_proj") if (key := f"{name}.{own}_numbers") in states]
    if len(packed) < 2:
        if packed:
            raise NotImplementedError(
                f"use_integers(): some matrices of {name} are floats, which have no layout beside others"
            )
        return []
    width, parts = experts.config.width, list[list[Numbers]]()
    outputs = (2 * width, packed[0].shape[2])
    few = [array.shape[1] < out for array, out in zip(packed, outputs, strict=True)]
    for expert in range(experts.config.experts):
        row = []
        for own, array, is_packed in zip(("gate_up_proj", "down_proj"), packed, few, strict=True):
            numbers = (unpack_outputs(array[expert]) if is_packed else array[expert]).T
            scales = states[f"{name}.{own}_scales"][expert]
            bits = 4 if is_packed or (numbers.dtype == np.int8 and np.abs(numbers).max() < 8) else 8
            made = Numbers(numbers, bits, scales, inputs=_input_bytes_of(f"{name}.{own}", users, states))
            halves = (slice(0, width), slice(width, None)) if own == "gate_up_proj" else (slice(None),)
            row += [made.take_outputs(half) for half in halves]
        parts.append(row)
    return parts


def pack_layers(model: Layer, family: ModuleType, layout: str) -> tuple[dict[str, Any], Packed]:
    """``quantization_config`` and tensors of the integer layers of ``model`` by their names in a file.

    Raises ValueError for a layout that is not known, NotImplementedError naming a layer that it cannot hold.
    """
    if layout == "mxfp4":
        return _pack_mxfp4(model, family)
    if layout not in LAYOUTS:
        hint = ", which only files that end so hold: give format" if layout == "gguf" else ""
        raise ValueError(f"layouts of integer weights are {', '.join((*LAYOUTS, 'mxfp4'))}; got {layout!r}{hint}")
    numbers = {
        name: replace(each, bits=8, is_e2m1=False) if each.is_e2m1 else each
        for name, each in integer_matrices(model, family)
    }
    pack, describe = LAYOUTS[layout]
    tensors = {}
    for name, each in numbers.items():
        try:
            tensors.update({f"{name}.{suffix}": array for suffix, array in pack(each).items()})
        except ValueError as error:
            raise NotImplementedError(f"save(): {name} has no {layout} layout: {error}") from None
    names = [name for kind in (nn.Linear, Router) for _, _, name, _ in layers_of(model, kind)]
    floats = [file_name(f"{name}.weight", family).removesuffix(".weight") for name in names]
    return describe(numbers, floats), tensors


def _groups(numbers: Numbers) -> int:
    """How many inputs a group has; -1 where all are one."""
    return len(numbers.numbers) // len(numbers.scales) if len(numbers.scales) > 1 else -1


def _common_form(layers: Mapping[str, Numbers]) -> tuple[tuple[int, int], dict[str, tuple[int, int]]]:
    """The bits and groups of most layers, and of those that have others."""
    forms = {name: (each.bits, _groups(each)) for name, each in layers.items()}
    common = max(forms.values(), key=list(forms.values()).count)
    for name, each in layers.items():
        if forms[name] == (common[0], -1) and len(each.numbers) == common[1]:
            forms[name] = common  # one group may be all of a layer's inputs
    return common, {name: form for name, form in forms.items() if form != common}


def integer_matrices(model: Layer, family: ModuleType, tables: bool = False) -> Iterator[tuple[str, Numbers]]:
    """Integer matrices by their names in a file, ``tables`` of words too where that is asked for."""
    stacked = [pattern for pattern, *_ in getattr(family, "STACKED", ())]
    for name, layer in model.named_sublayers():
        if isinstance(layer, QuantizedEmbedding) and not tables:
            continue
        if isinstance(layer, QuantizedLinear):
            if any(re.search(pattern, f"{name}.weight") for pattern in stacked):
                raise NotImplementedError(f"save(): {name} is one of several layers in one tensor of a file")
            yield file_name(f"{name}.weight", family).removesuffix(".weight"), layer.to_numbers()
        elif isinstance(layer, QuantizedExperts):
            for names, parts in zip(
                expert_matrices(name, layer.config, layer.width, family), layer.to_numbers(), strict=True
            ):
                yield from zip((stored for stored, *_ in names), parts, strict=True)


# ---- layouts: the tensors of a layer, and what ``quantization_config`` says


def _pack(numbers: Array, bits: int, axis: int) -> Array:
    """Numbers less their middle as unsigned ones in int32, the first in the lowest bits, along an axis."""
    each, unsigned = 32 // bits, np.moveaxis(numbers.astype(np.int64) + (1 << (bits - 1)), axis, -1).astype(np.uint32)
    if unsigned.shape[-1] % each:
        raise ValueError(f"{unsigned.shape[-1]} numbers do not fill words of {each}")
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    words = np.bitwise_or.reduce(unsigned.reshape(*unsigned.shape[:-1], -1, each) << shifts, axis=-1)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).view(np.int32)


def _zeros_of(made: Numbers) -> Array:
    return np.zeros(made.scales.shape, np.int64) if made.zeros is None else made.zeros


def _by_input(made: Numbers) -> tuple[Array, Array]:
    """Numbers [in, out] as inputs are ordered, and the group of each input."""
    groups = np.repeat(np.arange(len(made.scales)), len(made.numbers) // len(made.scales))
    order = np.arange(len(groups)) if made.order is None else made.order
    numbers, of = np.empty_like(made.numbers), np.empty(len(groups), np.int32)
    numbers[order], of[order] = made.numbers, groups
    return numbers, of


def _integers(made: Numbers) -> None:
    if made.numbers.dtype != np.int8:
        raise ValueError(f"its numbers are {made.numbers.dtype}, no integers")
    if made.inputs is not None:
        raise ValueError("its inputs are bytes")
    if made.offsets is not None:
        raise ValueError("its offsets are no multiples of its scales")


def _gptq(shift: int) -> Layout:
    def pack(made: Numbers) -> Packed:
        _integers(made)
        numbers, groups = _by_input(made)
        if _zeros_of(made).min() < shift - (1 << (made.bits - 1)):
            raise ValueError("a zero of 0 less one is no unsigned number; gptq_v2 holds it")
        zeros = _pack(_zeros_of(made) - shift, made.bits, 1)
        return {"qweight": _pack(numbers, made.bits, 0), "qzeros": zeros, "scales": made.scales, "g_idx": groups}

    return pack


def _describe_gptq(version: str) -> Callable[[Mapping[str, Numbers], list[str]], dict[str, Any]]:
    def describe(layers: Mapping[str, Numbers], floats: list[str]) -> dict[str, Any]:
        (bits, group_size), others = _common_form(layers)
        own = {f"+:^{re.escape(name)}$": {"bits": b, "group_size": size} for name, (b, size) in others.items()}
        return {
            "quant_method": "gptq", "bits": bits, "group_size": group_size, "checkpoint_format": version,
            **({"dynamic": own} if own else {}),
            "sym": all(each.zeros is None for each in layers.values()),
            "desc_act": any(each.order is not None for each in layers.values()),
        }  # fmt: skip

    return describe


def _awq(made: Numbers) -> Packed:
    _integers(made)
    if made.bits != 4 or made.order is not None:
        raise ValueError("it takes four bits, and inputs in their order")
    if made.numbers.shape[1] % 8:
        raise ValueError(f"{made.numbers.shape[1]} outputs do not fill words of 8")
    spread = [x.reshape(len(x), -1, 8)[..., AWQ_ORDER].reshape(len(x), -1) for x in (made.numbers, _zeros_of(made))]
    return {"qweight": _pack(spread[0], 4, 1), "qzeros": _pack(spread[1], 4, 1), "scales": made.scales}


def _describe_awq(layers: Mapping[str, Numbers], floats: list[str]) -> dict[str, Any]:
    (_, group_size), others = _common_form(layers)
    if others:
        raise NotImplementedError(f"save(): awq has no layout of layers in several groups: {', '.join(others):.200}")
    return {
        "quant_method": "awq", "bits": 4, "group_size": group_size, "version": "gemm", "zero_point": True,
        "modules_to_not_convert": floats,
    }  # fmt: skip


def _compressed_tensors(made: Numbers) -> Packed:
    if _format_of(made) != "pack-quantized":
        return _bytes(made)
    _integers(made)
    numbers, groups = _by_input(made)
    scales, shape = np.ascontiguousarray(made.scales.T), np.array(numbers.shape[::-1], np.int64)
    parts = {"weight_packed": _pack(numbers.T, made.bits, 1), "weight_scale": scales, "weight_shape": shape}
    if made.zeros is not None:
        parts["weight_zero_point"] = _pack(made.zeros.T, made.bits, 0)
    return parts if made.order is None else {**parts, "weight_g_idx": groups}


def _format_of(made: Numbers) -> str:
    """The format of compressed-tensors: packed integers, or numbers that are bytes."""
    if made.numbers.dtype != np.int8:
        return "float-quantized"
    return "pack-quantized" if made.inputs is None else "int-quantized"


def _bytes(made: Numbers) -> Packed:
    if made.offsets is not None or made.order is not None:
        raise ValueError("numbers in bytes take their inputs in order, and offsets that are multiples of scales")
    if made.numbers.dtype != np.int8 and len(made.scales) > 1:
        raise ValueError("numbers in e4m3 have one scale for each output")
    inputs = made.inputs or InputBytes()
    parts = {"weight": np.ascontiguousarray(made.numbers.T), "weight_scale": np.ascontiguousarray(made.scales.T)}
    if made.zeros is not None:
        parts["weight_zero_point"] = np.ascontiguousarray(made.zeros.T.astype(np.int8))
    if inputs.scale is not None:
        parts["input_scale"] = np.array([inputs.scale], np.float32)
    if inputs.zero is not None:
        parts["input_zero_point"] = np.array([inputs.zero], np.int8)
    return parts


def _describe_inputs(made: Numbers) -> dict[str, Any] | None:
    if made.inputs is None:
        return None
    is_dynamic = made.inputs.scale is None
    strategy = "token" if is_dynamic else "tensor"
    form = {"num_bits": 8, "type": "int", "symmetric": made.inputs.symmetric}
    return {**form, "dynamic": is_dynamic, "strategy": strategy}


def _describe_compressed(layers: Mapping[str, Numbers], floats: list[str]) -> dict[str, Any]:
    """One group of layers for each form; where there are several, each names its layers."""
    forms: dict[tuple[Any, ...], list[str]] = {}
    for name, each in layers.items():
        inputs = None if each.inputs is None else (each.inputs.scale is None, each.inputs.symmetric)
        form = (_format_of(each), each.bits, _groups(each), each.zeros is None, each.order is not None, inputs)
        forms.setdefault(form, []).append(name)
    groups, formats = {}, {form[0] for form in forms}
    for number, ((kind, bits, size, symmetric, ordered, _), names) in enumerate(forms.items()):
        weights = {
            "num_bits": bits, "type": "float" if kind == "float-quantized" else "int", "symmetric": symmetric,
            "dynamic": False,
            "group_size": size if size > 0 else None, "strategy": "group" if size > 0 else "channel",
            "actorder": "group" if ordered else None,
        }  # fmt: skip
        targets = ["Linear"] if len(forms) == 1 else names
        groups[f"group_{number}"] = {
            "targets": targets, "weights": weights, "input_activations": _describe_inputs(layers[names[0]]),
            "output_activations": None, **({"format": kind} if len(formats) > 1 else {}),
        }  # fmt: skip
    return {
        "quant_method": "compressed-tensors", "format": kind if len(formats) == 1 else "mixed-precision",
        "quantization_status": "compressed", "config_groups": groups, "ignore": floats,
    }  # fmt: skip


def _float8(made: Numbers) -> Packed:
    scales = made.scales[:, ::128]
    if made.numbers.dtype.name != "float8_e4m3fn" or not np.array_equal(
        np.repeat(scales, 128, axis=1)[:, : made.scales.shape[1]], made.scales
    ):
        raise ValueError("it takes e4m3 with a scale for each block of 128 x 128")
    return {"weight": np.ascontiguousarray(made.numbers.T), "weight_scale_inv": np.ascontiguousarray(scales.T)}


def _describe_float8(layers: Mapping[str, Numbers], floats: list[str]) -> dict[str, Any]:
    return {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def _pack_mxfp4(model: Layer, family: ModuleType) -> tuple[dict[str, Any], Packed]:
    """Experts side by side, as gpt-oss is published: see `quantized_weights`."""
    others = [
        name for _, _, name, layer in layers_of(model, QuantizedLinear) if not isinstance(layer, QuantizedEmbedding)
    ]
    tensors: Packed = {}
    for _, _, name, experts in layers_of(model, QuantizedExperts):
        base, parts = file_name(name, family), experts.to_numbers()
        if not experts.is_e2m1:
            others.append(name)
            continue
        for own, members in (("gate_up_proj", slice(0, 2)), ("down_proj", slice(2, 3))):
            numbers, scales = (
                np.stack([_alternate([getattr(each, kind).T for each in row[members]]) for row in parts])
                for kind in ("numbers", "scales")
            )
            tensors[f"{base}.{own}_blocks"] = _blocks_of_e2m1(numbers)
            _, exponents = np.frexp(scales.astype(np.float32))
            tensors[f"{base}.{own}_scales"] = (exponents + 127).astype(np.uint8)
    if others:
        raise NotImplementedError(f"save(): {others[0]} has no mxfp4 layout: its numbers are no experts' in e2m1")
    floats = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    return {"quant_method": "mxfp4", "modules_to_not_convert": floats}, tensors


def _alternate(matrices: list[Array]) -> Array:
    """Rows of one matrix, or of two in turns."""
    return np.stack(matrices, axis=1).reshape(-1, matrices[0].shape[1])


def _blocks_of_e2m1(numbers: Array) -> Array:
    """Two numbers to a byte, the first in its low half, and 32 to a block [..., in / 32, 16]."""
    bits = bits_of_e2m1(numbers).view(np.uint8).reshape(*numbers.shape[:-1], -1, 16, 2)
    packed: Array = bits[..., 0] & 15 | bits[..., 1] << 4
    return packed


LAYOUTS: Mapping[str, tuple[Layout, Callable[[Mapping[str, Numbers], list[str]], dict[str, Any]]]] = {
    "gptq": (_gptq(1), _describe_gptq("gptq")),
    "gptq_v2": (_gptq(0), _describe_gptq("gptq_v2")),
    "awq": (_awq, _describe_awq),
    "compressed-tensors": (_compressed_tensors, _describe_compressed),
    "fp8": (_float8, _describe_float8),
}

"""Weights rounded to the nearest of 8 or 4 bits, with a scale for each output or group of inputs.

Linear layers and products with a weight become `weight_only_linear`: the bytes are what lies in the file and in memory,
and products read them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.export import LoadedProgram
from argosy_phi_ops.context import building
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["LayerReport", "QuantizationReport", "round_to_nearest"]

Array = np.ndarray[Any, Any]
_LARGEST = {8: 127.0, 4: 7.0}
_PRODUCTS = {"phi.linear": "weight", "phi.matmul": "y"}
"""Operators that multiply with a weight, and the operand that it is."""
Chosen = dict[str, tuple[Operation, dict[str, Any]]]
_FLOATS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class LayerReport:
    """A weight that was rounded: bytes before and after, and its error, in the Frobenius norm and relative to it."""

    name: str
    bytes_before: int
    bytes_after: int
    error: float


@dataclass(frozen=True)
class QuantizationReport:
    """What a pass has done: ``layers``, and weights that were ``skipped`` with the reason."""

    layers: tuple[LayerReport, ...]
    skipped: Mapping[str, str]


def round_to_nearest(
    loaded: LoadedProgram, bits: int = 8, group_size: int = -1
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' weights in ``bits`` (8 or 4), a scale for each output, or for each of those
    and ``group_size`` (64, 128) inputs. ``loaded`` stays as it is.

    Weights that are used otherwise as well, such as tied embeddings, and those whose sizes do not divide stay floats
    and are reported. Raises ValueError for other bits and groups.
    """
    if bits not in _LARGEST or group_size not in (-1, 64, 128):
        raise ValueError(f"round_to_nearest: bits 8 or 4, groups of -1, 64 or 128; got {bits} and {group_size}")
    chosen, skipped = _choose(loaded.program, bits, group_size)
    states, layers = dict(loaded.states), []
    for name, (_, given) in chosen.items():
        before = states.pop(name)
        matrix = before.T if given.get("transpose_y") else before
        packed, scales, error = _rounded(matrix.astype(np.float32), bits, group_size)
        states[f"{name}.bytes"], states[f"{name}.scales"] = packed, np.ascontiguousarray(scales.astype(before.dtype))
        layers.append(LayerReport(name, before.nbytes, packed.nbytes + states[f"{name}.scales"].nbytes, error))
    program = _replaced(loaded.program, chosen, states, {"weight_dtype": f"int{bits}", "group_size": group_size})
    return LoadedProgram(program, states), QuantizationReport(tuple(layers), skipped)


def _choose(program: Program, bits: int, group_size: int) -> tuple[Chosen, dict[str, str]]:
    """The products whose weights are rounded, with their arguments, and why others are not, by the state's name."""
    names: dict[Value, str] = {state.argument: state.name for state in program.states}
    kept = {s.argument for s, made in zip(program.states, program.state_updates, strict=True) if made is s.argument}
    chosen: Chosen = {}
    skipped: dict[str, str] = {}
    for op in [op for op in program.block if op.name in _PRODUCTS]:
        given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
        weight: Value = given[_PRODUCTS[op.name]]
        name = names.get(weight)
        if name is not None:
            reason = _reason(given, weight, bits, group_size) if weight in kept else "the program changes it"
            if reason:
                skipped[name] = reason
            else:
                chosen[name] = op, given
    return chosen, skipped


def _reason(given: dict[str, Any], weight: Value, bits: int, group_size: int) -> str:
    """Why a weight stays as it is; empty where it does not."""
    users = [user for user in weight.users if user.name != "builtin.return"]
    if weight.ndim != 2 or weight.dtype not in _FLOATS or not all(isinstance(n, int) for n in weight.shape):
        return f"it is {weight.type}, no matrix of floats"
    if len(users) != 1 or given["x"] is weight:
        return f"{len(users)} operations use it"
    if given.get("transpose_x"):
        return "its product transposes the other operand"
    out, size = (int(n) for n in (weight.shape if given.get("transpose_y") else weight.shape[::-1]))  # type: ignore[arg-type]
    if bits == 4 and out % 2:
        return f"{out} outputs do not fill bytes of two"
    if group_size > 0 and size % group_size:
        return f"{size} inputs are no multiple of {group_size}"
    return ""


def _rounded(matrix: Array, bits: int, group_size: int) -> tuple[Array, Array, float]:
    """A weight [in, out] as bytes [out, in] (two outputs in one of 4 bits: see `weight_quantize`), scales, error."""
    size, out = matrix.shape
    groups = size // group_size if group_size > 0 else 1
    wide = matrix.reshape(groups, size // groups, out)
    scales = np.abs(wide).max(axis=1) / _LARGEST[bits]
    steps = np.where(scales == 0, 1, scales)[:, None]
    whole = np.clip(np.rint(wide / steps), -_LARGEST[bits], _LARGEST[bits])
    norm = float(np.linalg.norm(matrix)) or 1.0
    error = float(np.linalg.norm((whole * steps - wide).ravel())) / norm
    numbers = np.ascontiguousarray(whole.reshape(size, out).T).astype(np.int8)
    if bits == 4:
        low, high = numbers[: out // 2], numbers[out // 2 :]
        numbers = (low & 15) | (high << 4)
    return numbers, scales if group_size > 0 else scales[0], error


def _replaced(source: Program, chosen: Chosen, states: dict[str, Array], keywords: dict[str, Any]) -> Program:
    """The program with products of bytes in place of those with the chosen weights."""
    target, values = Program(source.name), dict[Value, Value]()
    target.attributes.update(source.attributes)
    for function in source.functions.values():
        target.add_function(function.clone())
    for given in source.inputs:
        values[given] = target.add_input(given.type, given.name_hint)
    parts: dict[str, list[Value]] = {}
    for state in source.states:
        if state.name in chosen:
            names = (f"{state.name}.bytes", f"{state.name}.scales")
            types = [TensorType(states[n].shape, as_dtype(states[n].dtype).name) for n in names]
            parts[state.name] = [target.add_state(n, t).argument for n, t in zip(names, types, strict=True)]
        else:
            values[state.argument] = target.add_state(state.name, state.type, state.attributes).argument
    replaced = {op: (name, arguments) for name, (op, arguments) in chosen.items()}
    linear, terminator = get_operator("weight_only_linear"), source.block.last
    for op in source.block:
        if op in replaced:
            name, arguments = replaced[op]
            bias = arguments.get("bias")
            weight, scales = parts[name]
            call = (values[arguments["x"]], weight, None if bias is None else values[bias], scales)
            operands, attributes = linear.signature.bind(call, keywords)
            builder = Builder.at_end(target.block)
            with building(builder):
                made = builder.create("phi.weight_only_linear", operands, attributes, location=op.location)
            values[op.result] = made.result
        elif op is not terminator:
            target.block.append(op.clone(values))
    made_of = {s.name: values.get(made) for s, made in zip(source.states, source.state_updates, strict=True)}
    updates = [made_of.get(state.name, state.argument) or state.argument for state in target.states]
    target.set_outputs([values[value] for value in source.outputs], updates)
    return target

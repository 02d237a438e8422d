"""Low-rank adapters (Hu et al., "LoRA", 2021) of a program's weights, chosen for each row of a batch.

:func:`read_adapter` reads a folder of PEFT (``adapter_config.json``, ``adapter_model.safetensors``),
:func:`add_adapters` makes a program with the further input ``adapter`` [batch]. Every row's products are grouped by its
adapter (Chen et al., "Punica", 2023), so that rows of many adapters share a step.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import AdapterError
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import apply_operator, weight_operand
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile

__all__ = ["ADAPTER", "Adapter", "add_adapters", "read_adapter"]

Array = np.ndarray[Any, Any]
ADAPTER = "adapter"
"""The input that chooses each row's adapter: 0 for none, else its place in the list, from 1 on."""
_PREFIX = "base_model.model."
_FACTOR = re.compile(r"^(?P<module>.+)\.lora_(?P<side>[AB])\.weight$")
_SWITCHES = (
    "use_dora", "fan_in_fan_out", "lora_bias", "use_qalora", "use_bdlora", "modules_to_save", "arrow_config",
    "alora_invocation_tokens", "kasa_config", "layer_replication", "monteclora_config", "target_parameters",
    "trainable_token_indices",
)  # fmt: skip
"""Keys that change what an adapter computes or which tensors it has."""


@dataclass(frozen=True)
class Adapter:
    """What is added to weights [in, out] by name: the product of two ``factors`` [in, r] and [r, out] each."""

    factors: Mapping[str, tuple[Array, Array]]


def read_adapter(folder: str | os.PathLike[str], rename: Callable[[str], str] = lambda name: name) -> Adapter:
    """The adapter of a PEFT folder; its scale is in the second factors. ``rename`` gives the weight of a program for
    that of the file (``model.layers.0.self_attn.q_proj.weight``), where they differ.

    Raises :class:`AdapterError` naming the file and what is missing, surplus, mis-shaped or not implemented.
    """
    path = os.path.join(os.fspath(folder), "adapter_config.json")
    config = _read_config(path)
    file = os.path.join(os.fspath(folder), "adapter_model.safetensors")
    try:
        with SafetensorsFile(file) as tensors:
            return Adapter({rename(name): pair for name, pair in _factors(tensors, config, file, path)})
    except (OSError, CheckpointError) as error:
        raise AdapterError(f"cannot read the adapter {file}: {error}") from None


def _read_config(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as opened:
            config = json.load(opened)
    except (OSError, ValueError, RecursionError) as error:
        raise AdapterError(f"cannot read {path}: {error}") from None
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        found = config.get("peft_type") if isinstance(config, dict) else config
        raise AdapterError(f"{path}: 'peft_type' should be 'LORA', got {found!r:.80}")
    changed = {key: config.get(key) for key in _SWITCHES}
    for key, value in {**changed, "bias": config.get("bias", "none") != "none"}.items():
        if value:
            raise AdapterError(f"{path}: {key!r} {config[key]!r:.80} is not implemented")
    for key in ("rank_pattern", "alpha_pattern"):
        if not isinstance(config.get(key) or {}, dict):
            raise AdapterError(f"{path}: {key!r} should be an object, got {config[key]!r:.80}")
    return config


def _factors(
    tensors: SafetensorsFile, config: dict[str, Any], file: str, path: str
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Names of weights and their factors."""
    sides: dict[str, dict[str, Array]] = {}
    for name in tensors:
        match = _FACTOR.match(name.removeprefix(_PREFIX))
        if match is None:
            raise AdapterError(f"{file}: {name} is no lora_A.weight or lora_B.weight of a linear layer")
        sides.setdefault(match["module"], {})[match["side"]] = np.array(tensors[name])
    for module, found in sides.items():
        if found.keys() != {"A", "B"}:
            raise AdapterError(f"{file}: {module} has lora_{'A' if 'A' in found else 'B'}.weight alone")
        down, up = found["A"], found["B"]
        rank = _number("r", "rank_pattern", module, config, path)
        if down.ndim != 2 or up.ndim != 2 or (down.shape[0], up.shape[1]) != (rank, rank):
            raise AdapterError(
                f"{file}: {module} has factors {list(down.shape)} and {list(up.shape)}; expected [{rank}, in] and "
                f"[out, {rank}]"
            )
        alpha = _number("lora_alpha", "alpha_pattern", module, config, path)
        scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
        yield f"{module}.weight", (down.T, (up.T.astype(np.float32) * np.float32(scale)).astype(up.dtype))


def _number(key: str, patterns: str, module: str, config: dict[str, Any], path: str) -> Any:
    """A number of the configuration for a module; patterns match the ends of names (as PEFT has it)."""
    table = config.get(patterns) or {}
    matching = (value for end, value in table.items() if module == end or module.endswith(f".{end}"))
    value = next(matching, config.get(key))
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0 or (key == "r" and value % 1):
        raise AdapterError(f"{path}: {key!r} of {module} should be a positive number, got {value!r:.80}")
    return value


def add_adapters(loaded: LoadedProgram, adapters: Sequence[Adapter]) -> LoadedProgram:
    """The program with a further input ``adapter`` [batch] int64: rows with 0 are those of ``loaded``, rows with i
    have ``adapters[i - 1]``. The first input is tokens [batch, sequence]; ``loaded`` stays as it is.

    Products with floats and with weights of few bits take adapters. Raises :class:`AdapterError` naming a weight that
    the program does not have, or that is of another shape.
    """
    program, states = loaded.program.clone(), dict(loaded.states)
    products = _products(program)
    batch, sequence = program.inputs[0].shape
    chosen = program.add_input(TensorType((batch,), "int64"), ADAPTER)
    first = program.block.first
    assert first is not None  # at least a return
    with emit_at(Builder.before(first)):
        prim.check_index(chosen, operator=ADAPTER, low=0, size=len(adapters) + 1)
        each = prim.broadcast(chosen, shape=(batch, sequence), axes=(0,))
        rows = prim.reshape(each, shape=(batch * sequence, 1))
    for name in dict.fromkeys(name for adapter in adapters for name in adapter.factors):
        if name not in products:
            raise AdapterError(
                f"adapters change {name}; the program has products with {sorted(products)[:3]} ... and none with it"
            )
        op, x = products[name]
        stacked = _stack_factors(name, adapters, (x.shape[-1], op.result.shape[-1]), op.result.dtype)
        arguments = []
        for side, array in zip("ab", stacked, strict=True):
            state = f"{name}.lora_{side}"
            arguments.append(program.add_state(state, TensorType(array.shape, op.result.dtype)).argument)
            states[state] = array
        _add_delta(op, x, rows, arguments)
    return LoadedProgram(program, states)


def _products(program: Program) -> dict[str, tuple[Operation, Value]]:
    """The products with a weight and their other operand, by the weight's name."""
    names: dict[Value, str] = {state.argument: state.name.removesuffix(".bytes") for state in program.states}
    found = {}
    for op in program.block:
        operands = weight_operand(op)
        if operands is not None and operands[1] in names and operands[0].ndim == 3:
            found[names[operands[1]]] = (op, operands[0])
    return found


def _stack_factors(name: str, adapters: Sequence[Adapter], sizes: tuple[Any, Any], dtype: str) -> tuple[Array, Array]:
    """The factors [adapters + 1, in, r] and [adapters + 1, r, out] of a weight, of zeros where there are none."""
    pairs = [adapter.factors.get(name) for adapter in adapters]
    rank = max(pair[0].shape[1] for pair in pairs if pair is not None)
    down, up = (
        np.zeros((len(pairs) + 1, *shape), as_dtype(dtype).numpy) for shape in ((sizes[0], rank), (rank, sizes[1]))
    )
    for i, pair in enumerate(pairs):
        if pair is None:
            continue
        if (pair[0].shape[0], pair[1].shape[1]) != sizes:
            raise AdapterError(
                f"adapter {i + 1} changes {name} as [{pair[0].shape[0]}, {pair[1].shape[1]}]; it is {list(sizes)}"
            )
        own = pair[0].shape[1]
        down[i + 1, :, :own], up[i + 1, :own] = pair
    return down, up


def _add_delta(op: Operation, x: Value, rows: Value, factors: Sequence[Value]) -> None:
    """Give users of a product its sum with the product of ``x`` and each row's factors."""
    result, uses = op.result, op.result.uses
    with emit_at(Builder.after(op)):
        made = prim.reshape(x, shape=(rows.shape[0], 1, x.shape[-1]))
        for factor in factors:
            made = apply_operator("gather_mm", made, rows, factor, location=op.location)
        total = prim.add(result, prim.reshape(made, shape=result.shape))
    for user, index in uses:
        user.set_operand(index, total)

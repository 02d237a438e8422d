"""Adapters as PEFT writes them: ``adapter_config.json`` and ``adapter_model.safetensors`` of a folder."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from argosy_infer.adapters import Adapter
from argosy_infer.errors import AdapterError
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile

__all__ = ["read_adapter"]

Array = np.ndarray[Any, Any]
_PREFIX = "base_model.model."
_FACTOR = re.compile(r"^(?P<module>.+)\.lora_(?P<side>[AB])\.weight$")
_SWITCHES = (
    "use_dora", "lora_bias", "use_qalora", "use_bdlora", "modules_to_save", "arrow_config", "alora_invocation_tokens",
    "kasa_config", "layer_replication", "monteclora_config", "trainable_token_indices",
)  # fmt: skip
"""Keys that change what an adapter computes or which tensors it has."""
_LARGEST = 1e6  # of ranks and scales


def read_adapter(
    folder: str | os.PathLike[str],
    rename: Callable[[str], str] = lambda name: name,
    experts: Mapping[str, tuple[int, int, int]] | None = None,
) -> Adapter:
    """The adapter of a PEFT folder; its scale is in the second factors. ``rename`` gives the weight of a program for
    that of the file (``model.layers.0.self_attn.q_proj.weight``), where they differ. ``experts``: the shapes
    [experts, in, out] of parameters that hold matrices of several experts (``target_parameters``), by name.

    Raises :class:`AdapterError` naming the file and what is missing, surplus, mis-shaped or not implemented.
    """
    path = os.path.join(os.fspath(folder), "adapter_config.json")
    config = _read_config(path)
    file = os.path.join(os.fspath(folder), "adapter_model.safetensors")
    try:
        with SafetensorsFile(file) as tensors:
            return Adapter({rename(name): pair for name, pair in _factors(tensors, config, experts or {}, file, path)})
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
    tensors: SafetensorsFile,
    config: dict[str, Any],
    experts: Mapping[str, tuple[int, int, int]],
    file: str,
    path: str,
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
        name, count = _weight_of(module, down, up, experts)
        rank = _number("r", "rank_pattern", (module, name), config, path) * count
        if down.ndim != 2 or up.ndim != 2 or (down.shape[0], up.shape[1]) != (rank, rank):
            raise AdapterError(
                f"{file}: {module} has factors {list(down.shape)} and {list(up.shape)}; expected [{rank}, in] and "
                f"[out, {rank}]"
            )
        alpha = _number("lora_alpha", "alpha_pattern", (module, name), config, path)
        scale = alpha / (math.sqrt(rank // count) if config.get("use_rslora") else rank // count)
        up = (up.astype(np.float32) * np.float32(scale)).astype(up.dtype)
        if name in experts:  # PEFT has the expert first in rows of the one factor, last in columns of the other
            yield (
                name,
                (
                    down.reshape(count, rank // count, -1).transpose(0, 2, 1),
                    up.reshape(len(up), rank // count, count).transpose(2, 1, 0),
                ),
            )
        else:
            yield name, (down.T, up.T)


def _weight_of(module: str, down: Array, up: Array, experts: Mapping[str, tuple[int, int, int]]) -> tuple[str, int]:
    """The weight that a module's factors change, and how many matrices it has. Of several parameters of one module
    (``experts``, ``experts.base_layer``) it is the one whose matrices fit."""
    owner = module.replace(".base_layer", "")
    for name, (count, size, out) in experts.items():
        if name.rpartition(".")[0] == owner and (down.shape[-1], up.shape[0]) == (size, out):
            return name, count
    return f"{owner}.weight", 1


def _number(key: str, patterns: str, names: tuple[str, ...], config: dict[str, Any], path: str) -> Any:
    """A number of the configuration for a module or parameter; patterns match the ends of names (as PEFT has it)."""
    table = config.get(patterns) or {}
    ends = {_literal(pattern, patterns, path): value for pattern, value in table.items()}
    matching = (value for end, value in ends.items() for name in names if f".{name}".endswith(f".{end}"))
    value: Any = next(matching, config.get(key))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < _LARGEST or (key == "r" and value % 1):
        raise AdapterError(f"{path}: {key!r} of {names[0]} should be a positive number, got {value!r:.80}")
    return value


def _literal(pattern: str, patterns: str, path: str) -> str:
    """The end of a name that a pattern stands for."""
    end = pattern.removeprefix(".*\\.").removeprefix("^").replace("\\.", ".")
    if re.search(r"[\\*+?()\[\]{}|^$]", end):
        raise AdapterError(f"{path}: {pattern!r:.80} of {patterns!r} is not implemented: expected the end of a name")
    return end

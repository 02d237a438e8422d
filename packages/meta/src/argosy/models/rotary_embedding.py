"""Rotary positions (Su et al., 2021) and their scaling to longer sequences.

Shapes: T positions, P pairs of channels, B batch, H heads, K width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import argosy as paddle
from argosy.models.configuration import ConfigFile, RotaryConfig

__all__ = ["length_of_rotations", "read_rotary", "rotate", "rotation_tables", "yarn_magnitude"]

Frequencies = tuple[Any, float]  # radians per position, [P] (numpy's or a tensor), and what cosines are multiplied with


def rotation_tables(config: RotaryConfig, length: Any) -> tuple[Any, Any]:
    """Cosines and sines [T, P] of the first ``length`` positions, float32."""
    frequencies, magnitude = _SCALINGS[config.scaling](config, length)
    if isinstance(frequencies, np.ndarray):
        frequencies = paddle.to_tensor(frequencies.astype(np.float32))
    angles_TP = paddle.arange(length, dtype="float32").unsqueeze(1) * frequencies
    return paddle.cos(angles_TP) * magnitude, paddle.sin(angles_TP) * magnitude


def length_of_rotations(config: RotaryConfig | None, length: int) -> int | None:
    """The longest text whose rotations are those of one of ``length`` tokens; None where all have the same."""
    if config is None or config.scaling not in ("dynamic", "longrope"):
        return None
    if config.scaling == "dynamic":
        return max(length, config.positions)
    original = int(config.parameters["original"])
    return original if length <= original else config.positions


def rotate(x_BTHK: Any, tables: tuple[Any, Any], interleaved: bool = False) -> Any:
    """``x`` with its first 2 P channels turned, in halves; the others follow as they are.

    Interleaved pairs come out in halves, too: scores do not change when queries and keys are permuted alike.
    """
    cos_T1P, sin_T1P = (table.unsqueeze(1).astype(x_BTHK.dtype) for table in tables)
    pairs = cos_T1P.shape[-1]
    turned = x_BTHK[..., : 2 * pairs]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :pairs], turned[..., pairs:]
    parts = [first * cos_T1P - second * sin_T1P, second * cos_T1P + first * sin_T1P]
    if x_BTHK.shape[-1] > 2 * pairs:
        parts.append(x_BTHK[..., 2 * pairs :])
    return paddle.concat(parts, axis=-1)


def read_rotary(
    config: ConfigFile, width: int, positions: int, interleaved: bool = False, kind: str | None = None
) -> RotaryConfig:
    """The rotary positions that a ``config.json`` describes: ``rope_parameters`` (of a ``kind`` of layer), or the older
    ``rope_theta`` beside ``rope_scaling``. Raises ConfigurationError for a scaling that is not known."""
    table = config.table("rope_parameters")
    if kind is not None and kind in table:
        table = table.table(kind)
    scaling = table if table.values else config.table("rope_scaling")
    name = scaling.text("rope_type", "type", default="default")
    if name not in _SCALINGS:
        raise scaling.error("rope_type", f"one of {', '.join(_SCALINGS)}", name)
    base = table.number("rope_theta", default=config.number("rope_theta", default=10000.0))
    part = table.number("partial_rotary_factor", default=config.number("partial_rotary_factor", default=1.0))
    if not 0 < part <= 1:
        raise config.error("partial_rotary_factor", "a number above 0, 1 at most", part)
    parameters = _READERS[name](scaling, config, int(width * part), positions)
    return RotaryConfig(int(width * part), base, name, parameters, positions, interleaved)


def yarn_magnitude(factor: float, scale: float = 1.0) -> float:
    """What YaRN (Peng et al., 2023) multiplies cosines and sines with, for sequences ``factor`` times as long."""
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


# Rules: the frequencies of P pairs for a sequence of ``length`` positions


def _powers(config: RotaryConfig) -> Any:
    exponents = np.arange(0, config.width, 2, dtype=np.float32) / np.float32(config.width)
    return np.float32(config.base) ** exponents


def _default(config: RotaryConfig, length: Any) -> Frequencies:
    return 1.0 / _powers(config), 1.0


def _linear_scaling(config: RotaryConfig, length: Any) -> Frequencies:
    return 1.0 / _powers(config) / config.parameters["factor"], 1.0


def _dynamic_scaling(config: RotaryConfig, length: Any) -> Frequencies:
    """The base grows with sequences longer than the model's (NTK-aware scaling)."""
    factor, width = config.parameters["factor"], config.width
    if isinstance(length, int):
        length = max(length, config.positions)
    else:
        length = paddle.maximum(paddle.full([], length, "float32"), paddle.full([], config.positions, "float32"))
    base = config.base * (factor * length / config.positions - (factor - 1)) ** (width / (width - 2))
    exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    if isinstance(length, int):
        return np.asarray(1.0 / base**exponents), 1.0
    return 1.0 / base ** paddle.to_tensor(exponents), 1.0


def _llama3(config: RotaryConfig, length: Any) -> Frequencies:
    """Long wavelengths are stretched, short ones stay, those between go over smoothly."""
    p = config.parameters
    frequencies = 1.0 / _powers(config)
    turns = p["original"] * frequencies / (2 * math.pi)
    kept = np.clip((turns - p["low"]) / (p["high"] - p["low"]), 0.0, 1.0)
    return kept * frequencies + (1 - kept) * frequencies / p["factor"], 1.0


def _yarn(config: RotaryConfig, length: Any) -> Frequencies:
    """Pairs that turn often stay, those that turn seldom are stretched, with a ramp between (Peng et al., 2023)."""
    p = config.parameters
    powers = _powers(config)
    first, last = (_pair_that_turns(p[name], config, p["original"]) for name in ("fast", "slow"))
    if p["truncate"]:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, config.width - 1)
    ramp = np.clip((np.arange(config.width // 2) - first) / (last - first or 0.001), 0.0, 1.0)
    return ramp / (p["factor"] * powers) + (1 - ramp) / powers, p["magnitude"]


def _pair_that_turns(turns: float, config: RotaryConfig, positions: float) -> float:
    """The pair (a fraction, too) that turns so often over ``positions``."""
    return config.width * math.log(positions / (turns * 2 * math.pi)) / (2 * math.log(config.base))


def _longrope(config: RotaryConfig, length: Any) -> Frequencies:
    """A factor for each pair, one list for short and one for long sequences (Ding et al., 2024)."""
    p = config.parameters
    powers = _powers(config)
    short, long = (1.0 / (np.asarray(p[name], np.float32) * powers) for name in ("short", "long"))
    if isinstance(length, int):
        return (long if length > p["original"] else short), p["magnitude"]
    is_long = paddle.full([], length, "float32") > p["original"]
    return paddle.where(is_long, paddle.to_tensor(long), paddle.to_tensor(short)), p["magnitude"]


_SCALINGS: dict[str, Callable[[RotaryConfig, Any], Frequencies]] = {
    "default": _default, "linear": _linear_scaling, "dynamic": _dynamic_scaling, "llama3": _llama3, "yarn": _yarn,
    "longrope": _longrope,
}  # fmt: skip


# Readers: the numbers of a rule, from ``config.json``


def _read_none(scaling: ConfigFile, config: ConfigFile, width: int, positions: int) -> dict[str, Any]:
    return {}


def _read_factor(scaling: ConfigFile, config: ConfigFile, width: int, positions: int) -> dict[str, Any]:
    return {"factor": scaling.number("factor")}


def _original(scaling: ConfigFile, config: ConfigFile, positions: int) -> int:
    default = config.integer("original_max_position_embeddings", default=positions)
    return scaling.integer("original_max_position_embeddings", default=default)


def _read_llama3(scaling: ConfigFile, config: ConfigFile, width: int, positions: int) -> dict[str, Any]:
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    if low == high:
        raise scaling.error("high_freq_factor", "another number than low_freq_factor", high)
    original = scaling.integer("original_max_position_embeddings")
    return {"factor": scaling.number("factor"), "low": low, "high": high, "original": original}


def _read_yarn(scaling: ConfigFile, config: ConfigFile, width: int, positions: int) -> dict[str, Any]:
    original = _original(scaling, config, positions)
    factor = scaling.number("factor", default=positions / original)
    scale, scale_all = scaling.number("mscale", default=0.0), scaling.number("mscale_all_dim", default=0.0)
    if scale and scale_all:
        inferred = yarn_magnitude(factor, scale) / yarn_magnitude(factor, scale_all)
    else:
        inferred = yarn_magnitude(factor)
    return {
        "factor": factor,
        "original": original,
        "magnitude": scaling.number("attention_factor", default=inferred),
        "fast": scaling.number("beta_fast", default=32.0),
        "slow": scaling.number("beta_slow", default=1.0),
        "truncate": scaling.flag("truncate", default=True),
        "scale_all": scale_all,
    }


def _read_longrope(scaling: ConfigFile, config: ConfigFile, width: int, positions: int) -> dict[str, Any]:
    original = _original(scaling, config, positions)
    factor = scaling.number("factor", default=positions / original)
    inferred = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return {
        "original": original,
        "magnitude": scaling.number("attention_factor", default=inferred),
        "short": scaling.numbers("short_factor", width // 2),
        "long": scaling.numbers("long_factor", width // 2),
    }


_READERS: dict[str, Callable[[ConfigFile, ConfigFile, int, int], dict[str, Any]]] = {
    "default": _read_none, "linear": _read_factor, "dynamic": _read_factor, "llama3": _read_llama3, "yarn": _read_yarn,
    "longrope": _read_longrope,
}  # fmt: skip

"""Structured pruning: heads, channels and layers of a decoder are removed, by magnitude; a smaller model is left.

What is left has its own ``config.json`` and is trained on, exported and saved as any other. Of each layer the same
number is kept, since configurations name one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.models.attention import Attention
from argosy.models.configuration import ConfigFile
from argosy.models.decoder import CausalLM
from argosy.models.feedforward import GatedFeedForward
from argosy.models.loading import build, config_of
from argosy_tensorcore.storage import StridedArray

__all__ = ["prune"]

Array = np.ndarray[Any, Any]
Choice = tuple[int, Array]  # an axis, and what is kept along it


def prune(
    model: CausalLM, heads: int | None = None, channels: int | None = None, layers: Sequence[int] | None = None
) -> CausalLM:
    """A model with ``heads`` key heads in each layer (and the query heads that share them), ``channels`` of each
    perceptron, and the ``layers`` of these numbers alone; None keeps all. ``model`` stays as it is.

    Kept are those with the largest product of norms: of values and outputs of a head, of the columns that make a
    channel and the row that takes it. Raises ValueError for more than there are, NotImplementedError for other kinds of
    attention and perceptrons, and for kinds of layers that ``config.json`` would number anew.
    """
    config, blocks = config_of(model), list(model.model.layers)
    kept = list(range(len(blocks))) if layers is None else sorted(set(layers))
    if not kept or kept[0] < 0 or kept[-1] >= len(blocks):
        raise ValueError(f"prune(): layers are numbers from 0 to {len(blocks) - 1}, got {layers}")
    values = {**config.values, "num_hidden_layers": len(kept)}
    if isinstance(values.get("layer_types"), list):
        values["layer_types"] = [values["layer_types"][i] for i in kept]
    chosen = [_choices(blocks[i], heads, channels) for i in kept]
    if heads is not None:
        attention = blocks[0].self_attn.config
        queries = heads * (attention.heads // attention.key_heads)
        values |= {"num_key_value_heads": heads, "num_attention_heads": queries, "head_dim": attention.head_width}
    if channels is not None:
        values["intermediate_size"] = channels
    made = build(ConfigFile(values, config.path))
    assert isinstance(made, CausalLM)
    windows = [getattr(blocks[i].self_attn.config, "window", None) for i in kept]
    if windows != [getattr(block.self_attn.config, "window", None) for block in made.model.layers]:
        raise NotImplementedError("prune(): config.json tells windows by a layer's number; it names no layer_types")
    given = dict(model.named_parameters())
    for name, parameter in made.named_parameters():
        parameter.payload = StridedArray.from_array(_select(name, given, kept, chosen))
    made.training = model.training
    return made


def _select(name: str, given: dict[str, Any], kept: list[int], chosen: list[dict[str, Choice]]) -> Array:
    """The kept part of the parameter that the smaller model's ``name`` stands for."""
    head, _, rest = name.partition("model.layers.")
    if head or not rest:
        return np.array(given[name].payload.array())
    number, _, own = rest.partition(".")
    array = given[f"model.layers.{kept[int(number)]}.{own}"].payload.array()
    axis, indices = chosen[int(number)].get(own, (0, np.arange(array.shape[0])))
    return np.ascontiguousarray(np.take(array, indices, axis))


def _choices(block: Any, heads: int | None, channels: int | None) -> dict[str, Choice]:
    """What is kept of a layer's parameters that have heads or channels, by their names in it."""
    found: dict[str, Choice] = {}
    if heads is not None:
        found.update(_kept_heads(block.self_attn, heads))
    if channels is not None:
        found.update(_kept_channels(block.mlp, channels))
    return found


def _kept_heads(layer: Any, heads: int) -> dict[str, Choice]:
    if not isinstance(layer, Attention):
        raise NotImplementedError(f"prune(): removing heads of {type(layer).__name__} is not implemented")
    config = layer.config
    groups, width, each = config.key_heads, config.head_width, config.heads // config.key_heads
    values = layer.v_proj.weight.numpy().reshape(-1, groups, width)
    outputs = layer.o_proj.weight.numpy().reshape(groups, each * width, -1)
    kept = _largest(np.linalg.norm(values, axis=(0, 2)) * np.linalg.norm(outputs, axis=(1, 2)), heads, "key heads")
    queries = (kept[:, None] * each + np.arange(each)).reshape(-1)
    wide, narrow = ((x[:, None] * width + np.arange(width)).reshape(-1) for x in (queries, kept))
    found = {"self_attn.o_proj.weight": (0, wide), "self_attn.sinks": (0, queries)}
    for name, indices in (("q", wide), ("k", narrow), ("v", narrow)):
        found |= {f"self_attn.{name}_proj.weight": (1, indices), f"self_attn.{name}_proj.bias": (0, indices)}
        if config.norm == "all":
            found[f"self_attn.{name}_norm.weight"] = (0, indices)
    return found


def _kept_channels(layer: Any, channels: int) -> dict[str, Choice]:
    if not isinstance(layer, GatedFeedForward):
        raise NotImplementedError(f"prune(): removing channels of {type(layer).__name__} is not implemented")
    norms = [np.linalg.norm(part.weight.numpy(), axis=0) for part in (layer.gate_proj, layer.up_proj)]
    scores = norms[0] * norms[1] * np.linalg.norm(layer.down_proj.weight.numpy(), axis=1)
    kept = _largest(scores, channels, "channels")
    found: dict[str, Choice] = {"mlp.down_proj.weight": (0, kept)}
    for name in ("gate_proj", "up_proj"):
        found |= {f"mlp.{name}.weight": (1, kept), f"mlp.{name}.bias": (0, kept)}
    return found


def _largest(scores: Array, count: int, what: str) -> Array:
    """The numbers of the ``count`` largest scores, in order."""
    if not 0 < count <= len(scores):
        raise ValueError(f"prune(): a layer has {len(scores)} {what}; {count} cannot be kept")
    return np.sort(np.argsort(-scores, kind="stable")[:count])

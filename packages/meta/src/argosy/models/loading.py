"""``load`` and ``save``: a folder of a model becomes a layer with its tokenizer, and is written back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib import import_module
from types import ModuleType

from argosy.models.classifiers import SequenceClassifier, TokenClassifier
from argosy.models.configuration import ConfigFile
from argosy.models.decoder import CausalLM, HeadlessDecoder
from argosy.models.families import FAMILIES
from argosy.models.families.common import classes_of, classifier_dropout
from argosy.models.files import ModelFiles, write_folder
from argosy.models.gguf import GgufFile
from argosy.models.gguf_writer import write_gguf
from argosy.models.pooling import Pooling
from argosy.models.quantized_layers import QuantizedEmbedding, QuantizedExperts, QuantizedLinear, layers_of
from argosy.models.quantized_layouts import integer_matrices, pack_layers
from argosy.models.quantized_weights import quantize_layers
from argosy.models.weights import TensorNames, collect_weights, file_name, fill_weights, parts_of
from argosy.nn.layer import Layer
from argosy.nn.lazy import LazyGuard
from argosy_infer.llm import GenerationSettings, Tokenizer
from argosy_infer.sources import TensorSource
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["build", "config_of", "family_of", "load_model", "save", "sources_of"]

_CONFIG = "_model_file"  # where a loaded layer keeps its config.json
_COUNTS = ("num_hidden_layers", "n_layer", "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_LARGEST_COUNT = 1 << 14
"""Of what is made one by one."""


def family_of(config: ConfigFile) -> ModuleType:
    """The family's module. Raises ConfigurationError for a ``model_type`` that is not known."""
    name = config.text("model_type")
    if name not in FAMILIES:
        raise config.error("model_type", f"one of {', '.join(sorted(FAMILIES))}", name)
    return import_module(f"argosy.models.families.{FAMILIES[name]}")


def build(config: ConfigFile, predictions: int = 0) -> Layer:
    """The model that a ``config.json`` describes, with fresh weights and the head that ``architectures`` names.

    predictions: how many modules that predict further tokens follow a decoder's layers.
    """
    family = family_of(config)
    for key in _COUNTS:
        if key in config and config.integer(key, least=0) > _LARGEST_COUNT:
            raise config.error(key, f"at most {_LARGEST_COUNT}", config.optional(key))
    if hasattr(family, "build"):
        model: Layer = family.build(config)
    else:
        sizes = replace(family.configure(config), predictions=predictions)
        kind = config.architecture("ForCausalLM")
        if kind.endswith("ForSequenceClassification"):
            model = SequenceClassifier(sizes, classes_of(config))
        elif kind.endswith("ForTokenClassification"):
            model = TokenClassifier(sizes, classes_of(config), classifier_dropout(config))
        elif kind.endswith("Model") and not kind.endswith("LMHeadModel"):
            model = HeadlessDecoder(sizes)
        elif not kind.endswith("ForCausalLM"):
            known = "ForCausalLM, ForSequenceClassification, ForTokenClassification and Model"
            raise config.error("architectures", f"one that ends in {known}", kind)
        else:
            model = CausalLM(sizes)
    model.__dict__[_CONFIG] = config
    return model


def config_of(model: Layer) -> ConfigFile:
    """The ``config.json`` of a model. Raises TypeError for another layer than those of ``load_model`` and ``build``."""
    config: ConfigFile | None = model.__dict__.get(_CONFIG)
    if config is None:
        raise TypeError(f"expected a model that load() or build() made, with a config.json; got {type(model).__name__}")
    return config


def load_model(folder: str | os.PathLike[str], dtype: str | None = None, integers: bool = False) -> Layer:
    """The model of a folder, or of a GGUF file, in evaluation mode, its weights mapped from the files.

    Matrices that a file holds as one tensor are views of its pages: nothing is read before it is used, and training
    writes to private copies of pages. ``dtype`` converts the weights, which makes copies; without it matrices of
    several dtypes become that which most of their numbers have. With ``integers`` linear layers multiply with the
    integers of the blocks of a GGUF file, and rows of its table of words are taken out of these; else they become
    float32. Raises ConfigurationError and CheckpointError
    naming file, key or tensor.
    """
    with announce_wait(f"loading {folder}"):
        if os.fspath(folder).endswith(".gguf"):
            return model_of_file(GgufFile(folder, integers), dtype)
        return _make_model(ConfigFile.read(folder), ModelFiles(folder), os.fspath(folder), dtype)


def model_of_file(file: GgufFile, dtype: str | None = None) -> Layer:
    """The model of a GGUF file that is open. Raises as `load_model` does."""
    return _make_model(file.config, file, file.path, dtype)


def _make_model(config: ConfigFile, files: GgufFile | ModelFiles, where: str, dtype: str | None) -> Layer:
    with LazyGuard():
        model = build(config, sum(name.endswith(".eh_proj.weight") for name in files))
        rest = quantize_layers(model, family_of(config), config, files, where)
    made = fill_weights(model, family_of(config), rest, where, dtype)
    for *_, table in layers_of(model, QuantizedEmbedding):
        table.dtype = made
    model.eval()
    return model


def sources_of(model: Layer) -> dict[str, TensorSource]:
    """Where the files that ``model`` was loaded from have its parameters, those that one tensor holds; none of GGUF
    files. Raises TypeError for a layer that has no ``config.json``."""
    config = config_of(model)
    folder, family = os.path.dirname(config.path), family_of(config)
    if not config.path.endswith("config.json") or not os.path.exists(config.path):
        return {}
    files = ModelFiles(folder)
    known, found = TensorNames(files), {}
    for name, parts in parts_of(model, family, known.has).items():
        if len(parts) == 1 and not parts[0].place and not parts[0].cut and (tensor := known.find(parts[0].name)):
            found[name] = TensorSource(files.path_of(tensor), tensor, parts[0].transposed)
    return found


def save(
    model: Layer,
    folder: str | os.PathLike[str],
    format: str | None = None,
    tokenizer: Tokenizer | None = None,
    generation: GenerationSettings | None = None,
    pooling: Pooling | None = None,
) -> None:
    """Write ``model``, which ``load_model`` or ``build`` made, as a folder that transformers reads, or as a GGUF file
    for llama.cpp whose matrices have ``format`` ("F32" unless given) where the path ends so, with its ``tokenizer``,
    the folder's settings of ``generation``, and the ``pooling`` of a sentence encoder; integer weights are Q8_0 or Q4_0
    in GGUF files, whose blocks hold the same numbers. Tables of words are floats in folders.

    A model with integer weights is written in the layout ``format``: "gptq", "gptq_v2", "awq", "compressed-tensors",
    "fp8", "mxfp4" (that of the folder that it was loaded from, unless given). Raises TypeError for another layer,
    ValueError for what GGUF files cannot hold and for a layout that is not known, NotImplementedError naming a layer
    that it cannot hold, or what a GGUF file cannot say of a tokenizer.
    """
    config = config_of(model)
    family, values = family_of(config), json.loads(json.dumps(config.values))
    is_gguf = os.fspath(folder).endswith(".gguf")
    integers = any(isinstance(layer, (QuantizedLinear, QuantizedExperts)) for layer in model.sublayers())
    with announce_wait(f"saving {folder}"):
        tensors = collect_weights(model, family)
        if is_gguf:
            if pooling not in (None, Pooling()):
                raise NotImplementedError("save(): a GGUF file of pooled vectors is not written, a folder is")
            numbers = {f"{name}.weight": each for name, each in integer_matrices(model, family, tables=True)}
            write_gguf(folder, config, {**tensors, **numbers}, format or "F32", tokenizer)
            return
        values.pop("quantization_config", None)
        if integers:
            values["quantization_config"], packed = pack_layers(model, family, format or _layout_of(config))
            tensors.update(packed)
            for _, _, name, table in layers_of(model, QuantizedEmbedding):
                tensors[file_name(f"{name}.weight", family)] = table.to_numbers().dequantize().T
        more = {} if pooling is None else pooling.files(config.integer("hidden_size", "n_embd"))
        for each in (tokenizer, generation):
            more |= {} if each is None else each.files()
        write_folder(folder, values, tensors, more)


def _layout_of(config: ConfigFile) -> str:
    """The layout of integer weights that a ``config.json`` names."""
    settings = config.table("quantization_config")
    method = settings.text("quant_method", default="compressed-tensors")
    return settings.text("checkpoint_format", default=method) if method == "gptq" else method

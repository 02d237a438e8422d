"""Weights of models in files: which tensors of a file make which parameter, read without a copy and written back.

A family says how its files differ from the model: ``NAMES`` are substitutions (pattern, replacement) from parameters'
names to the file's; ``STACKED`` (pattern, replacement, members) names matrices that a file holds as one;
``INTERLEAVED_EXPERTS``: gates and ups of experts alternate; ``TRANSPOSED`` is False where matrices lie as
[in, out], but for ``TRANSPOSED_TOO``, ``IGNORED`` are patterns of tensors that a file may have besides.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from argosy import nn
from argosy.models.feedforward import Experts, Router
from argosy.nn.layer import Layer
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.wait_notice import count_steps

__all__ = ["PREFIXES", "Part", "TensorNames", "collect_weights", "file_name", "fill_weights", "parts_of"]

Array = np.ndarray[Any, Any]
PREFIXES = ("", "model.", "transformer.", "bert.", "ernie.")
_IGNORED = (r"rotary_emb\.inv_freq$", r"^mtp\.", r"\.mtp_block\.")
_WHOLE = slice(None)
_LARGEST = 1 << 50  # numbers of a parameter, beyond which no array has its shape
_FLOATS = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Part:
    """A tensor of a file that makes a part of a parameter: ``parameter[place] = file[name][cut]``, the last two axes
    exchanged where ``transposed``."""

    name: str
    transposed: bool = False
    place: tuple[Any, ...] = ()
    cut: tuple[Any, ...] = ()


def parts_of(model: Layer, family: ModuleType, has: Any = lambda name: True) -> dict[str, list[Part]]:
    """The parts of each parameter, by the parameter's name; ``has(name)`` tells whether a file has a tensor, where it
    may be written in several ways."""
    owners = {f"{prefix}." if prefix else "": layer for prefix, layer in model.named_sublayers(include_self=True)}
    found: dict[str, list[Part]] = {}
    for name, parameter in model.named_parameters():
        prefix, _, own = name.rpartition(".")
        layer = owners[f"{prefix}." if prefix else ""]
        if isinstance(layer, Experts):
            found[name] = list(_of_experts(f"{prefix}.", own, layer, family, has))
        else:
            is_matrix = own == "weight" and isinstance(layer, (nn.Linear, Router))
            found[name] = [_plain_part(name, parameter, is_matrix, model, family)]
    return found


def _plain_part(name: str, parameter: Tensor, is_matrix: bool, model: Layer, family: ModuleType) -> Part:
    transposed = is_matrix and (getattr(family, "TRANSPOSED", True) or name in getattr(family, "TRANSPOSED_TOO", ()))
    for pattern, replacement, members in getattr(family, "STACKED", ()):
        match = re.search(pattern, name)
        if match:
            start = sum(_columns(model, name, match, each) for each in members[: members.index(match[1])])
            rows = slice(start, start + parameter.shape[-1])
            return Part(file_name(re.sub(pattern, replacement, name), family), transposed, cut=(rows,))
    return Part(file_name(name, family), transposed)


def _columns(model: Layer, name: str, match: re.Match[str], member: str) -> int:
    """Columns of the sibling ``member`` of the matrix ``name``."""
    sibling = name[: match.start(1)] + member + name[match.end(1) :]
    return int(dict(model.named_parameters())[sibling].shape[-1])


def _of_experts(prefix: str, own: str, layer: Experts, family: ModuleType, has: Any) -> Iterator[Part]:
    """Experts lie one by one, or all in one tensor ([E, D, 2 F] of gates beside ups, or alternating)."""
    config = layer.config
    whole, bias = file_name(prefix + own, family), own.endswith("_bias")
    halves = [slice(0, config.width), slice(config.width, None)]
    if getattr(family, "INTERLEAVED_EXPERTS", False):
        if own.startswith("gate_up"):
            for offset, half in enumerate(halves):
                every_second = slice(offset, None, 2)
                yield Part(whole, place=(..., half), cut=(..., every_second))
        else:
            yield Part(whole)
        return
    if not bias and has(whole):
        yield Part(whole, transposed=True)
        return
    names = (
        (("gate_proj", halves[0]), ("up_proj", halves[1])) if own.startswith("gate_up") else (("down_proj", _WHOLE),)
    )
    for expert in range(config.experts):
        for member, columns in names:
            written = file_name(f"{prefix}{expert}.{member}.{'bias' if bias else 'weight'}", family)
            yield Part(written, not bias, (expert, columns) if bias else (expert, _WHOLE, columns))


def file_name(name: str, family: ModuleType) -> str:
    """The name that a parameter has in files of a family."""
    for pattern, replacement in getattr(family, "NAMES", ()):
        name = re.sub(pattern, replacement, name)
    return name


# ---- reading


def fill_weights(
    model: Layer, family: ModuleType, files: Mapping[str, Any], where: str, dtype: str | None = None
) -> str:
    """Give each parameter of ``model`` its values: views of the file's memory where one tensor makes it, converted to
    ``dtype`` if that is given; else matrices, and biases that are added to their products, are converted to that which
    most of their numbers have, since products take one dtype, which is returned. Raises CheckpointError for missing,
    surplus and mis-shaped tensors, naming them, before any parameter is changed, and TypeError for a dtype of
    integers."""
    if dtype is not None and as_dtype(dtype).name not in _FLOATS:
        raise TypeError(
            f"weights become one of {', '.join(_FLOATS)}, got {dtype!r}; argosy_infer.compress makes integers"
        )
    known = TensorNames(files)
    parts = parts_of(model, family, known.has)
    parameters = dict(model.named_parameters())
    missing = [part.name for each in parts.values() for part in each if not known.has(part.name)]
    if missing:
        raise CheckpointError(
            f"{where}: {len(missing)} tensors are missing, such as {missing[:3]}; there are {list(files)[:3]}, ..."
        )
    _refuse_surplus(model, family, known, {part.name for each in parts.values() for part in each}, where)
    for name, each in parts.items():
        for part in each:
            stored = known.form(part.name)
            _check_shape(name, parameters[name], part, tuple(stored.shape), where)
            _check_dtype(part, stored, where)
    of_matrices = as_dtype(dtype or _common_dtype(known.form(part.name) for each in parts.values() for part in each))
    added = _biases_of_products(model)
    for name, each in count_steps(parts.items(), "tensors"):
        parameter = parameters[name]
        stored = _assemble(parameter, each, known)
        follows = dtype or stored.ndim > 1 or name in added
        wanted = (of_matrices if follows else as_dtype(stored.dtype)).numpy
        keep = name.endswith("e_score_correction_bias")  # what balances loads is finer than bfloat16
        values = stored if keep or stored.dtype == wanted else stored.astype(wanted)
        parameter.payload = StridedArray.from_array(values)
        parameter.__dict__.pop("_init_func", None)  # nothing is left to fill
    return of_matrices.name


def _biases_of_products(model: Layer) -> set[str]:
    """The names of biases that products with matrices have."""
    layers = dict(model.named_sublayers())
    owners = {name: layers.get(name.removesuffix(".bias")) for name, _ in model.named_parameters()}
    products = {name: layer for name, layer in owners.items() if layer is not None and not isinstance(layer, Router)}
    return {name for name, layer in products.items() if getattr(getattr(layer, "weight", None), "ndim", 2) > 1}


def _common_dtype(tensors: Iterable[Array]) -> np.dtype[Any]:
    """That of most numbers in matrices; float32 where there are none."""
    numbers: Counter[np.dtype[Any]] = Counter()
    for tensor in tensors:
        if tensor.ndim > 1:
            numbers[tensor.dtype] += tensor.size
    return numbers.most_common(1)[0][0] if numbers else np.dtype(np.float32)


class TensorNames:
    """Tensors of files, with or without the prefix of the model within a model with a head."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self.files = files

    def find(self, name: str) -> str | None:
        """The name under which a file has ``name``."""
        if name in self.files:
            return name
        candidates = [prefix + name for prefix in PREFIXES if prefix]
        candidates += [name.removeprefix(prefix) for prefix in PREFIXES if prefix and name.startswith(prefix)]
        return next((each for each in candidates if each in self.files), None)

    def has(self, name: str) -> bool:
        return self.find(name) is not None

    def shape(self, name: str) -> Iterable[int]:
        shape: Iterable[int] = self.array(name).shape
        return shape

    def array(self, name: str) -> Array:
        array: Array = self.files[self.find(name)]  # type: ignore[index]
        return array

    def form(self, name: str) -> Array:
        """An array of the tensor's shape and dtype; its numbers are not asked for."""
        read: Callable[[Any], Array] = getattr(self.files, "form", self.files.__getitem__)
        return read(self.find(name))

    def read(self, part: Part) -> Array:
        array = self.array(part.name)
        array = array[part.cut] if part.cut else array
        return array.swapaxes(-1, -2) if part.transposed else array


def _assemble(parameter: Tensor, parts: list[Part], files: TensorNames) -> Array:
    if len(parts) == 1 and not parts[0].place:
        array = files.read(parts[0])
        return array.reshape(parameter.shape) if array.shape != tuple(parameter.shape) else array
    first = files.read(parts[0])
    made = np.empty(tuple(parameter.shape), first.dtype)
    for part in parts:
        made[part.place] = files.read(part)
    return made


def _check_dtype(part: Part, stored: Array, where: str) -> None:
    """Parameters are floats: integers, and floats of eight bits, stand for something with scales."""
    dtype = as_dtype(stored.dtype).name
    if dtype not in _FLOATS:
        raise CheckpointError(
            f"{where}: {part.name} is {dtype}; expected floats, or a quantization_config with its scales"
        )


def _check_shape(name: str, parameter: Tensor, part: Part, shape: tuple[int, ...], where: str) -> None:
    """A file's tensor has the shape of the part that it makes; axes of size 1 in front do not count."""
    if math.prod(parameter.shape) > _LARGEST:
        raise CheckpointError(
            f"{where}: {name} would have shape {list(parameter.shape)}; {part.name} has {list(shape)}"
        )
    spot = np.broadcast_to(np.empty((), np.uint8), tuple(parameter.shape))
    wanted = (spot[part.place] if part.place else spot).shape
    given = np.broadcast_to(np.empty((), np.uint8), shape)
    if part.cut and (len(shape) != (1 if parameter.ndim == 1 else parameter.ndim)):
        raise CheckpointError(
            f"{where}: {part.name} has shape {list(shape)}; expected {parameter.ndim} axes for {name}"
        )
    cut = given[part.cut] if part.cut else given
    got = cut.swapaxes(-1, -2).shape if part.transposed and cut.ndim > 1 else cut.shape
    if tuple(n for n in got if n != 1) != tuple(n for n in wanted if n != 1):
        expected = list(wanted[:-2] + wanted[:-3:-1]) if part.transposed else list(wanted)
        raise CheckpointError(f"{where}: {part.name} has shape {list(shape)}; {name} expects {expected}")


def _refuse_surplus(model: Layer, family: ModuleType, known: TensorNames, used: set[str], where: str) -> None:
    taken = {known.find(name) for name in used}
    patterns = [*_IGNORED, *getattr(family, "IGNORED", ())]
    if getattr(model.config, "tied", False):
        patterns.append(r"^lm_head\.weight$")
    rest = [name for name in known.files if name not in taken and not any(re.search(p, name) for p in patterns)]
    layers = len(getattr(model.config, "blocks", ()))
    if layers:  # modules that predict further tokens follow the layers
        rest = [name for name in rest if not (m := re.search(r"^model\.layers\.(\d+)\.", name)) or int(m[1]) < layers]
    if rest:
        raise CheckpointError(f"{where}: {len(rest)} tensors belong to no parameter, such as {rest[:3]}")


# ---- writing


def collect_weights(model: Layer, family: ModuleType) -> dict[str, Array]:
    """The tensors of a file that :func:`fill_weights` reads as the parameters of ``model``."""
    parameters = dict(model.named_parameters())
    pieces: dict[str, list[tuple[Array, Part]]] = {}
    for name, each in parts_of(model, family, lambda _: False).items():  # experts one by one
        array = parameters[name].payload.array()
        for part in each:
            piece = array[part.place] if part.place else array
            pieces.setdefault(part.name, []).append((piece.swapaxes(-1, -2) if part.transposed else piece, part))
    return {name: _join(each) for name, each in pieces.items()}


def _join(pieces: list[tuple[Array, Part]]) -> Array:
    if len(pieces) == 1 and not pieces[0][1].cut:
        return np.ascontiguousarray(pieces[0][0])
    first, part = pieces[0]
    if any(isinstance(index, slice) and index.step for index in part.cut):  # alternating columns
        made = np.empty((*first.shape[:-1], 2 * first.shape[-1]), first.dtype)
    else:
        made = np.empty((sum(len(piece) for piece, _ in pieces), *first.shape[1:]), first.dtype)
    for piece, part in pieces:
        made[part.cut] = piece
    return made

"""``save`` and ``load``: nested dictionaries, lists and tuples of tensors and plain values in one file.

The file's extension says the format: ``.safetensors``, or with any other (``.pdparams``, ``.pdopt``, ``.pdtensor``)
Paddle's (see ``pickled``), which is also what file objects take.

In safetensors a flat dictionary of tensors is stored under its own names, as every reader of the format expects. What
is nested gets names joined with ``/``, and its structure and plain values stand as JSON in the file's metadata.
Loading never executes anything from a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from argosy.framework import paddle_pickle as pickled
from argosy.static.scope import Variable
from argosy_hwadapt.files import content_key, member_path, write_file, write_files
from argosy_tensorcore.dtype import bfloat16
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, save_file
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.wait_notice import announce_wait, count_steps

__all__ = ["MissingFileError", "load", "replace_file", "save"]

TREE = "argosy.tree"
_OTHER = (".pdiparams", ".pdmodel", ".json")
_DEPTH = 64


class MissingFileError(FileNotFoundError, ValueError):
    """There is no file of that name. Paddle's scripts catch ValueError, Python's FileNotFoundError."""


def save(obj: Any, path: str | os.PathLike[str] | BinaryIO, protocol: int = 4, **configs: Any) -> None:
    """Write ``obj`` to ``path``: safetensors where it ends so, else Paddle's format (``.pdparams``, ``.pdopt``, any
    name); atomically: on any error what was there stays.

    obj: tensors or arrays in nested dicts (with string keys), lists and tuples, beside numbers, strings, booleans,
    None; of a dataclass its fields, as a dictionary, and of an enumeration's member the value: files name no classes,
    and what trainers save as their arguments comes back as a dictionary. protocol: of the pickle, in Paddle's formats.
    Raises :class:`~argosy.framework.paddle_pickle.UnsavableError` naming the place of anything else,
    NotImplementedError for other formats, OSError from the disk.
    """
    if configs:
        raise TypeError(f"save() has no argument {sorted(configs)}")
    if hasattr(path, "write"):
        path.write(pickled.dumps(obj, protocol))
        return
    is_pickled = _is_pickled(path, "save", isinstance(obj, Mapping))
    with announce_wait(f"saving {os.fspath(path)}"):
        if is_pickled:
            replace_file(path, pickled.dumps(obj, protocol))
        else:
            _save_tensors(obj, path)


def _save_tensors(obj: Any, path: str | os.PathLike[str]) -> None:
    tensors: dict[str, Any] = {}
    if isinstance(obj, Mapping) and all(isinstance(k, str) and _is_array(v) for k, v in obj.items()):
        save_file(obj, path)
        return
    tree = _encode(obj, "", tensors)
    save_file(tensors, path, {TREE: json.dumps(tree)})


def save_together(objects: Mapping[str, Any], protocol: int = 4) -> None:
    """:func:`save` several objects by path, in Paddle's format, as one: whenever it is interrupted,
    :func:`loadable_path` finds all of the old files or all of the new ones. The first path decides.
    """
    data = {path: [pickled.dumps(x, protocol)] for path, x in objects.items()}
    leader, *members = data
    os.makedirs(os.path.dirname(os.path.abspath(leader)), exist_ok=True)
    write_files(leader, data[leader], {path: data[path] for path in members})


def loadable_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file with what was written last to ``path``: another name where :func:`save_together` was interrupted after
    it had replaced the file that decides, which has the name of ``path`` up to the extension."""
    folder, name = os.path.split(os.path.abspath(path))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    if not any(each.startswith(f".{name}.") for each in names):
        return path  # no save was interrupted
    stem = os.path.splitext(name)[0]
    for leader in sorted(each for each in names if each != name and os.path.splitext(each)[0] == stem):
        with open(os.path.join(folder, leader), "rb") as file:
            found = member_path(path, content_key(iter(lambda: file.read(1 << 20), b"")))
        if found != path:
            return found
    return path


def load(path: str | os.PathLike[str] | BinaryIO, return_numpy: bool = False, **configs: Any) -> Any:
    """What :func:`save` wrote, with tensors (or arrays, with ``return_numpy``) of their own memory.

    Raises :class:`MissingFileError`, CheckpointError for a truncated or corrupted file and for a pickle that asks for
    anything but plain data and arrays, NotImplementedError for other formats.
    Returns an object of the structure that was saved.
    """
    if configs:
        raise TypeError(f"load() has no argument {sorted(configs)}")
    try:
        with announce_wait(f"loading {path}"):
            return _load(loadable_path(path) if isinstance(path, (str, os.PathLike)) else path, return_numpy)
    except FileNotFoundError as error:
        raise MissingFileError(error.errno, error.strerror, os.fspath(path)) from None  # type: ignore[arg-type]


def _load(path: Any, return_numpy: bool) -> Any:
    if hasattr(path, "read"):
        return _load_pickled(path.read(), getattr(path, "name", "the file object"), return_numpy)
    if _is_pickled(path, "load", _holds_pickle(path)):
        with open(path, "rb") as stream:
            return _load_pickled(stream.read(), os.fspath(path), return_numpy)
    with SafetensorsFile(path) as file:
        arrays = {name: np.array(file[name]) for name in count_steps(file, "tensors")}
        text = file.metadata.get(TREE)
    make: Callable[[Any], Any] = (lambda a: a) if return_numpy else lambda a: Tensor._wrap(StridedArray.from_array(a))
    if text is None:
        return {name: make(array) for name, array in arrays.items()}
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{os.fspath(path)}: the structure in {TREE!r} is not JSON: {error}") from error
    return _decode(tree, arrays, make, os.fspath(path), 0)


def _is_pickled(path: Any, verb: str, is_state: bool) -> bool:
    """Whether the name of ``path`` asks for Paddle's format. Raises NotImplementedError for names of programs, unless
    a state is there, as ``save_group_sharded_model`` writes it."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{verb}(): argument 'path' must be a path or a file object, got {path!r:.60}")
    text: str = os.fspath(path)
    extension = os.path.splitext(text)[1]
    if extension in _OTHER and not is_state:
        raise NotImplementedError(
            f"{verb}({text!r}): programs are not written or read here; for them there are jit.save and jit.load, and "
            "static.save_inference_model"
        )
    if not os.path.basename(text):
        raise ValueError(f"{verb}({text!r}): the path should name a file, not a folder")
    return extension != ".safetensors"


def _holds_pickle(path: Any) -> bool:
    if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(1) == b"\x80"


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` beside ``path`` and put it in its place once it is on the disk."""
    os.makedirs(os.path.dirname(os.path.abspath(os.fspath(path))), exist_ok=True)
    write_file(path, [data])


def _load_pickled(data: bytes, name: str, return_numpy: bool) -> Any:
    return pickled.loads(data, str(name), (lambda array, _: array) if return_numpy else _named_tensor)


def _named_tensor(array: Any, name: str | None) -> Tensor:
    """A tensor of ``array``; uint16 is how bfloat16 travels in Paddle's formats."""
    tensor = Tensor._wrap(StridedArray.from_array(array.view(bfloat16.numpy) if array.dtype == np.uint16 else array))
    if name is not None:
        tensor.name = name
    return tensor


def _is_array(x: object) -> bool:
    return type(x) is Tensor or isinstance(x, np.ndarray)


def _encode(x: Any, where: str, tensors: dict[str, Any]) -> Any:
    """``x`` as JSON: every container and tensor is an object of one tagged key, plain values are themselves."""
    x = pickled.without_class(x)
    if _is_array(x):
        tensors[where] = x
        return {"tensor": where}
    if isinstance(x, Variable):
        tensors[where] = np.asarray(x)
        return {"tensor": where}
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, Mapping):
        return {"dict": {_key(k, where): _encode(v, _join(where, k), tensors) for k, v in x.items()}}
    if isinstance(x, (list, tuple)):
        items = [_encode(v, _join(where, str(i)), tensors) for i, v in enumerate(x)]
        return {"tuple" if isinstance(x, tuple) else "list": items}
    raise pickled.UnsavableError(x, where)


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"save() writes dictionaries with string keys; at {where or 'the top'!r} there is {key!r}")
    return key


def _join(where: str, key: Any) -> str:
    part = str(key).replace("~", "~0").replace("/", "~1")
    return f"{where}/{part}" if where else part


def _decode(x: Any, arrays: dict[str, Any], make: Callable[[Any], Any], path: str, depth: int) -> Any:
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if depth > _DEPTH or not isinstance(x, dict) or len(x) != 1:
        raise CheckpointError(f"{path}: the structure in {TREE!r} is damaged")
    ((kind, held),) = x.items()
    if kind == "tensor" and isinstance(held, str):
        if held not in arrays:
            raise CheckpointError(f"{path}: the structure names tensor {held!r}, which the file lacks")
        return make(arrays[held])
    if kind == "dict" and isinstance(held, dict):
        return {k: _decode(v, arrays, make, path, depth + 1) for k, v in held.items()}
    if kind in ("list", "tuple") and isinstance(held, list):
        items = [_decode(v, arrays, make, path, depth + 1) for v in held]
        return tuple(items) if kind == "tuple" else items
    raise CheckpointError(f"{path}: the structure in {TREE!r} is damaged")

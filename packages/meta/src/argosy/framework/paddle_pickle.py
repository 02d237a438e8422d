"""Paddle's ``.pdparams`` and ``.pdopt``: pickles of nested plain data and numpy arrays, written and read.

Unpickling runs whatever callables a file names. Here a file can name seven, none of which does anything but hold data:
each is answered by an object of this module that stands in for it, and arrays are made only after the whole file has
been read, when their size is known to fit the bytes that are there.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from argosy.static.scope import Variable
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.tensor import Tensor

__all__ = ["NAME_TABLE", "UnsavableError", "dumps", "loads", "without_class"]

NAME_TABLE = "StructuredToParameterName@@"
"""The key under which a state dict's file keeps the parameter name of each of its entries."""

_DEPTH = 64
_DAMAGED = (
    pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError, LookupError, OverflowError
)  # fmt: skip
_ELEMENTS = frozenset(
    {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"}
)  # fmt: skip


# ---- writing


class UnsavableError(TypeError, ValueError):
    """What was to be saved, at a place such as ``model/weight``, is no tensor and no plain value. A ValueError, too,
    which is Paddle's for a Layer."""

    def __init__(self, x: object, where: str) -> None:
        instead = "save its state_dict()" if hasattr(x, "state_dict") else "only tensors and plain values"
        super().__init__(f"save() cannot write {type(x).__name__} at {where or 'the top'!r}; {instead}")


def dumps(obj: Any, protocol: int = 4) -> bytes:
    """``obj`` as Paddle pickles it: a state dict as arrays with the table of names, any other nest with each tensor as
    ``(name, array)``. bfloat16 travels as its bits, uint16.

    Raises ValueError for another protocol than 2, 3 or 4, :class:`UnsavableError` naming the place of what is not
    plain data.
    """
    if protocol not in (2, 3, 4):
        raise ValueError(f"save() writes pickle protocols 2, 3 and 4, not {protocol!r}")
    if not _is_state_dict(obj):
        return pickle.dumps(_plain_data(obj, "", lambda t: (t.name, _bits(t))), protocol)
    plain = _plain_data(obj, "", _bits)
    plain[NAME_TABLE] = {key: value.name or key for key, value in obj.items() if type(value) is Tensor}
    return pickle.dumps(plain, protocol)


def _is_state_dict(obj: Any) -> bool:
    """Whether Paddle takes ``obj`` for a state dict: each value is a tensor, or a dict without tensors."""
    return isinstance(obj, Mapping) and all(
        type(value) is Tensor or (isinstance(value, Mapping) and not _holds_tensor(value)) for value in obj.values()
    )


def _holds_tensor(x: Any) -> bool:
    if isinstance(x, Mapping):
        return any(_holds_tensor(v) for v in x.values())
    return type(x) is Tensor or (isinstance(x, (list, tuple, set)) and any(_holds_tensor(v) for v in x))


def _bits(tensor: Tensor) -> Any:
    array = np.ascontiguousarray(to_numpy(tensor)).reshape(tensor.shape)
    if tensor.dtype.name == "bfloat16":
        return array.view(np.uint16)
    if not tensor.dtype.in_numpy:
        raise TypeError(f"save() cannot write {tensor.dtype} in Paddle's format; use .safetensors")
    return array


def without_class(x: Any) -> Any:
    """The fields of a dataclass as a dictionary, the value of an enumeration's member; anything else as it is. A file
    names no classes, which whoever loads it would have to import."""
    if isinstance(x, Enum):
        return without_class(x.value)
    if is_dataclass(x) and not isinstance(x, type) and not hasattr(x, "state_dict"):
        return {field.name: getattr(x, field.name) for field in fields(x)}
    return x


def _plain_data(x: Any, where: str, tensor: Callable[[Tensor], Any]) -> Any:
    x = without_class(x)
    if type(x) is Tensor:
        return tensor(x)
    if isinstance(x, Variable):
        return np.asarray(x)
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        return x
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.str[1:] in _ELEMENTS:
        return x
    if isinstance(x, Mapping):
        return {key: _plain_data(value, f"{where}/{key}", tensor) for key, value in x.items()}
    if isinstance(x, (list, tuple, set, frozenset)):
        items = [_plain_data(item, f"{where}/{i}", tensor) for i, item in enumerate(x)]
        return items if isinstance(x, list) else type(x)(items) if type(x) in (set, frozenset) else tuple(items)
    raise UnsavableError(x, where.strip("/"))


# ---- reading


def loads(data: bytes, name: str, make: Callable[[Any, str | None], Any]) -> Any:
    """What the pickle ``data`` holds; ``make(array, tensor name or None)`` gives what stands for each array.

    ``name`` is the file's, for messages. The table of names is left out. Raises CheckpointError for a damaged file,
    for one that asks for anything but plain data and arrays, naming it, for one nested deeper than 64, and for one
    whose arrays would take more memory than the file has bytes.
    """
    _check_codes(data, name)
    try:
        tree = _Unpickler(io.BytesIO(data), name).load()
    except CheckpointError:
        raise
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        EOFError,
        AttributeError,
        LookupError,
        OverflowError,
    ) as error:
        raise CheckpointError(f"{name}: the pickle is damaged: {error}") from error
    return _Builder(name, make, len(data)).top(tree)


def _check_codes(data: bytes, name: str) -> None:
    """Refuse what could cost memory before any object is made: lengths beyond the file and huge memo slots."""
    seen = 0
    try:
        for code, argument, _ in pickletools.genops(data):
            seen += 1
            if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > seen:
                raise CheckpointError(f"{name}: the pickle is damaged: memo slot {argument} after {seen} steps")
            if code.name in ("EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "INST", "OBJ", "NEWOBJ_EX"):
                raise CheckpointError(f"{name}: refused, the pickle uses {code.name}, which plain data never needs")
    except CheckpointError:
        raise
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{name}: the pickle is damaged: {error}") from error


class _Standin:
    """What a file gets for a name it may use: callable, without attributes, closed to what pickle could set."""

    __slots__ = ("_make",)
    _make: Callable[..., Any]

    def __init__(self, make: Callable[..., Any]) -> None:
        object.__setattr__(self, "_make", make)

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise pickle.UnpicklingError("a pickle tried to change what it was given to read with")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a pickle tried to change what it was given to read with")


class _Element:
    """A dtype by its name, ``f4``, and byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: Any) -> None:
        code = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(code, str) or code.lstrip("<>|=") not in _ELEMENTS:
            raise pickle.UnpicklingError(f"arrays of dtype {code!r} are refused")
        self.code = code.lstrip("<>|=")
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else order
        if self.order not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise pickle.UnpicklingError(f"structured dtypes are refused: {state!r:.80}")


class _Array:
    """An array that is not made yet."""

    __slots__ = ("data", "element", "fortran", "shape")

    def __init__(self, *_: Any) -> None:
        self.data: Any = None

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.element, self.fortran, self.data = state

    def build(self) -> Any:
        """The array; ValueError when its parts do not fit together."""
        data = self.data.encode("latin1") if isinstance(self.data, str) else self.data
        if not isinstance(data, (bytes, bytearray)) or type(self.element) is not _Element:
            raise ValueError("an array without data")
        if not isinstance(self.shape, tuple) or not all(type(n) is int and n >= 0 for n in self.shape):
            raise ValueError(f"an array of shape {self.shape!r:.80}")
        flat = np.frombuffer(data, np.dtype(self.element.order + self.element.code))
        array = flat.reshape(self.shape, order="F" if self.fortran else "C")
        return np.array(array, array.dtype.newbyteorder("="), order="C")


def _make_scalar(element: Any, data: Any) -> _Array:
    found = _Array()
    found.__setstate__((1, (), element, False, data))
    return found


def _latin1(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes encoded as {encoding!r:.40} are refused")
    return text.encode("latin1")


_ARRAY, _SCALAR = _Standin(_Array), _Standin(_make_scalar)
_ADMITTED = {
    "numpy.ndarray": _Standin(_Array),
    "numpy.dtype": _Standin(_Element),
    "numpy.core.multiarray._reconstruct": _ARRAY,
    "numpy._core.multiarray._reconstruct": _ARRAY,
    "numpy.core.multiarray.scalar": _SCALAR,
    "numpy._core.multiarray.scalar": _SCALAR,
    "collections.OrderedDict": _Standin(dict),
    "builtins.tuple": _Standin(tuple),
    "__builtin__.tuple": _Standin(tuple),
    "builtins.set": _Standin(set),
    "_codecs.encode": _Standin(_latin1),
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, name: str) -> None:
        super().__init__(file, encoding="latin1")
        self._name = name

    def find_class(self, module: str, name: str) -> Any:
        found = _ADMITTED.get(f"{module}.{name}")
        if found is None:
            raise CheckpointError(
                f"{self._name}: refused, the pickle asks for {module}.{name}; only plain data and numpy arrays are read"
            )
        return found


class _Builder:
    """Rebuilds what was read, each shared part once, in arrays of at most ``room`` bytes together."""

    def __init__(self, name: str, make: Callable[[Any, str | None], Any], room: int) -> None:
        self._name = name
        self._room = room
        self._make = make
        self._done: dict[int, Any] = {}
        self._tells = False
        """Whether the file tells tensors by their names; arrays without one stay arrays then, as in Paddle."""

    def top(self, tree: Any) -> Any:
        """The whole; a state dict's tensors take their names from its table."""
        table = tree.get(NAME_TABLE) if isinstance(tree, dict) else None
        if not isinstance(table, dict):
            self._tells = _names_a_tensor(tree)
            return self.build(tree, 0)
        self._tells = True
        return {
            key: self._array(value, table[key]) if type(value) is _Array and key in table else self.build(value, 1)
            for key, value in tree.items()
            if key != NAME_TABLE
        }

    def build(self, x: Any, depth: int) -> Any:
        """``x`` with arrays in place of what stood for them."""
        if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
            return x
        if id(x) not in self._done:
            if depth > _DEPTH:
                raise CheckpointError(f"{self._name}: nested deeper than {_DEPTH}, or within itself")
            self._done[id(x)] = self._part(x, depth + 1)
        return self._done[id(x)]

    def _part(self, x: Any, depth: int) -> Any:
        if type(x) is _Array:
            return self._array(x, None)
        if type(x) is dict:
            return {key: self.build(value, depth) for key, value in x.items()}
        if _is_named(x):
            return self._array(x[1], x[0])
        if type(x) in (list, tuple):
            return type(x)([self.build(item, depth) for item in x])
        if type(x) is set and not any(type(item) in (_Array, _Element, _Standin) for item in x):
            return x
        raise CheckpointError(f"{self._name}: refused, {type(x).__name__.strip('_')} where plain data belongs")

    def _array(self, x: _Array, tensor_name: Any) -> Any:
        self._room -= len(x.data) if isinstance(x.data, (bytes, bytearray, str)) else 0
        if self._room < 0:  # arrays that share their bytes in the file would not share memory here
            raise CheckpointError(f"{self._name}: refused, its arrays take more memory than the file has bytes")
        try:
            array = x.build()
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{self._name}: a damaged array: {error}") from error
        if self._tells and tensor_name is None:
            return array[()]  # a scalar where it has no axes
        return self._make(array, tensor_name if isinstance(tensor_name, str) else None)


def _is_named(x: Any) -> bool:
    return type(x) is tuple and len(x) == 2 and isinstance(x[0], str) and type(x[1]) is _Array


def _names_a_tensor(tree: Any) -> bool:
    """Whether a pair of a name and an array, which is how a tensor is written, stands in the nest."""
    left, seen = [tree], {id(tree)}  # a hostile one refers to its parts very often, or to itself
    while left:
        x = left.pop()
        if _is_named(x):
            return True
        items = x.values() if type(x) is dict else x if type(x) in (list, tuple) else ()
        fresh = [item for item in items if id(item) not in seen]
        seen.update(map(id, fresh))
        left += fresh
    return False

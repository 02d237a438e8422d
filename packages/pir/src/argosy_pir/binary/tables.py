"""Tables of types, attribute values and locations: written once each, entries refer to earlier ones only."""

from __future__ import annotations

from struct import pack, unpack

from argosy_pir.attributes import Attributes, Dense, FrozenDict, Symbol, attribute_key
from argosy_pir.binary.format import Numbers
from argosy_pir.dims import SymExpr
from argosy_pir.errors import FormatError
from argosy_pir.location import UNKNOWN, FusedLocation, Location
from argosy_pir.text.dims import parse_dim
from argosy_pir.types import FunctionType, OpaqueType, TensorType, TokenType, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from argosy_pir.attributes import Attribute
    from argosy_pir.dims import Dim

MAX_NODES = 1 << 20  # parts of one entry with shared parts counted as often as they occur
MAX_DEPTH = 100  # as in the text form
MAX_INTEGER = 512  # bytes

_TENSOR, _TOKEN, _FUNCTION, _OPAQUE = range(4)
_NONE, _FALSE, _TRUE, _INT, _NEGATIVE, _BIG, _FLOAT, _COMPLEX, _STRING, _BYTES, _TUPLE, _MAPPING, _DIM = range(13)
_TYPE, _SYMBOL, _DENSE = range(13, 16)
_SINGLE, _FUSED = range(2)


class Writer:
    """Collects tables while a program is written; each method returns the index of an entry."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.types: list[int] = []
        self.attributes: list[int] = []
        self.locations: list[int] = []
        self.blob = bytearray()
        self._type_index: dict[Type, int] = {}
        self._attribute_index: dict[Any, int] = {}
        self._location_index: dict[Location, int] = {}

    def string(self, text: str) -> int:
        """Index of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def type(self, type: Type) -> int:
        """Index of a type."""
        index = self._type_index.get(type)
        if index is None:
            entry = self._type_entry(type)
            index = self._type_index[type] = len(self._type_index)
            self.types += entry
        return index

    def _type_entry(self, type: Type) -> list[int]:
        if isinstance(type, TensorType):
            return [_TENSOR, self.string(type.dtype), len(type.shape), *map(self.dim, type.shape)]
        if isinstance(type, FunctionType):
            inputs, results = [*map(self.type, type.inputs)], [*map(self.type, type.results)]
            return [_FUNCTION, len(inputs), *inputs, len(results), *results]
        if isinstance(type, OpaqueType):
            return [_OPAQUE, self.string(type.text)]
        if isinstance(type, TokenType):
            return [_TOKEN]
        raise FormatError(f"type {type!r} of class {type.__class__.__name__} has no binary form")

    def dim(self, size: Dim) -> int:
        """A size as one number: twice a number, or twice the index of its text plus one."""
        return 2 * self.string(str(size)) + 1 if isinstance(size, SymExpr) else 2 * size

    def attribute(self, value: Attribute) -> int:
        """Index of an attribute value."""
        key = attribute_key(value)
        index = self._attribute_index.get(key)
        if index is None:
            entry = self._attribute_entry(value)
            index = self._attribute_index[key] = len(self._attribute_index)
            self.attributes += entry
        return index

    def _attribute_entry(self, value: Any) -> list[int]:
        if value is None or value is True or value is False:
            return [_NONE if value is None else _TRUE if value else _FALSE]
        if isinstance(value, tuple):
            return [_TUPLE, len(value), *map(self.attribute, value)]
        if isinstance(value, FrozenDict):
            items = [number for k, v in value.items() for number in (self.string(k), self.attribute(v))]
            return [_MAPPING, len(value), *items]
        if isinstance(value, Type):
            return [_TYPE, self.type(value)]
        return self._leaf(value)

    def _leaf(self, value: Any) -> list[int]:
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return [_FLOAT, _bits(value)]
        if isinstance(value, complex):
            return [_COMPLEX, _bits(value.real), _bits(value.imag)]
        if isinstance(value, str):
            return [_STRING, self.string(value)]
        if isinstance(value, bytes):
            return [_BYTES, self._bytes(value)]
        if isinstance(value, Symbol):
            return [_SYMBOL, self.string(value.name)]
        if isinstance(value, SymExpr):
            return [_DIM, self.string(str(value))]
        if isinstance(value, Dense):
            return [_DENSE, self.type(value.type), self._bytes(value.data)]
        raise FormatError(f"attribute value {value!r} has no binary form")

    def _integer(self, value: int) -> list[int]:
        if abs(value) < 1 << 63:
            return [_INT, value] if value >= 0 else [_NEGATIVE, -value]
        if value.bit_length() >= 8 * MAX_INTEGER:
            raise FormatError(f"an integer of {value.bit_length()} bits is beyond the limit of {8 * MAX_INTEGER}")
        return [_BIG, self._bytes(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))]

    def _bytes(self, data: bytes) -> int:
        """Append to the blob; the length is all a reader needs, for entries take from it in order."""
        self.blob += data
        return len(data)

    def location(self, location: Location) -> int:
        """Index of a location plus one; 0 where it is unknown."""
        if location.is_unknown:
            return 0
        index = self._location_index.get(location)
        if index is None:
            if isinstance(location, FusedLocation):
                parts = [self.location(part) for part in location.locations]
                entry = [_FUSED, len(parts), *parts]
            else:
                names = self.string(location.file), self.string(location.function)
                entry = [_SINGLE, names[0], location.line, location.column, names[1]]
            index = self._location_index[location] = len(self._location_index) + 1
            self.locations += entry
        return index


class Reader:
    """The tables of a file, as lists of what the indices stand for."""

    def __init__(self, strings: list[str], types: bytes, attributes: bytes, blob: bytes, locations: bytes) -> None:
        self.strings = strings
        self.types: list[Type] = []
        self.attributes: list[Attribute] = []
        self.locations: list[Location] = [UNKNOWN]
        self._blob = blob
        self._blob_at = 0
        self._weights: list[tuple[int, int]] = []
        self._fill(types, self._type)
        self._weights = []
        self._fill(attributes, self._attribute)
        self._fill(locations, self._location)
        if self._blob_at != len(blob):
            raise FormatError(f"{len(blob) - self._blob_at} bytes of data belong to nothing")

    def _fill(self, data: bytes, read: Callable[[Numbers], None]) -> None:
        numbers = Numbers(data)
        while numbers.at < len(numbers.numbers):
            read(numbers)

    def _weigh(self, parts: list[int]) -> None:
        """Note size and depth of a new entry; raises ``FormatError`` where sharing hides too much of
        either."""
        size = 1 + sum(self._weights[part][0] for part in parts)
        depth = 1 + max((self._weights[part][1] for part in parts), default=0)
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise FormatError(f"an entry has {size} parts nested {depth} deep, beyond {MAX_NODES} and {MAX_DEPTH}")
        self._weights.append((size, depth))

    def _type(self, numbers: Numbers) -> None:
        kind = numbers.read()
        parts: list[int] = []
        if kind == _TENSOR:
            dtype = self.strings[numbers.read()]
            made: Type = TensorType([self._dim(code) for code in numbers.take(numbers.count())], dtype)
        elif kind == _TOKEN:
            made = TokenType()
        elif kind == _OPAQUE:
            made = OpaqueType(self.strings[numbers.read()])
        elif kind == _FUNCTION:
            inputs = numbers.take(numbers.count())
            results = numbers.take(numbers.count())
            parts = inputs + results
            made = FunctionType([self.types[i] for i in inputs], [self.types[i] for i in results])
        else:
            raise FormatError(f"there is no kind of type {kind}")
        self._weigh(parts)
        self.types.append(made)

    def _dim(self, code: int) -> Dim:
        return parse_dim(self.strings[code >> 1]) if code & 1 else code >> 1

    def _attribute(self, numbers: Numbers) -> None:
        kind = numbers.read()
        parts: list[int] = []
        if kind == _TUPLE:
            parts = numbers.take(numbers.count())
            made: Attribute = tuple([self.attributes[i] for i in parts])
        elif kind == _MAPPING:
            pairs = numbers.take(2 * numbers.count())
            parts = pairs[1::2]
            made = FrozenDict.of_normal(self.pairs(pairs))
        else:
            made = self._read_leaf(kind, numbers)
        self._weigh(parts)
        self.attributes.append(made)

    def pairs(self, numbers: list[int]) -> Attributes:
        """Names and values for index pairs; raises ``FormatError`` for a name that comes twice.

        The values are normal already: normalising again would unfold what they share.
        """
        made = Attributes()
        strings, values = self.strings, self.attributes
        for i in range(0, len(numbers), 2):
            dict.__setitem__(made, strings[numbers[i]], values[numbers[i + 1]])
        if len(made) != len(numbers) // 2:
            raise FormatError("an attribute is given twice")
        return made

    def _read_leaf(self, kind: int, numbers: Numbers) -> Attribute:
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        first = numbers.read()
        if kind in (_INT, _NEGATIVE):
            return first if kind == _INT else -first
        if kind == _FLOAT:
            return _float(first)
        if kind == _COMPLEX:
            return complex(_float(first), _float(numbers.read()))
        if kind == _STRING:
            return self.strings[first]
        if kind in (_BYTES, _BIG):
            data = self._take(first)
            return data if kind == _BYTES else _big_integer(data)
        if kind == _TYPE:
            return self.types[first]
        if kind == _SYMBOL:
            return Symbol("@" + self.strings[first])
        if kind == _DIM:
            return parse_dim(self.strings[first])
        if kind == _DENSE:
            return self._dense(self.types[first], numbers.read())
        raise FormatError(f"there is no kind of attribute {kind}")

    def _dense(self, type: Type, length: int) -> Dense:
        if not isinstance(type, TensorType):
            raise FormatError(f"a constant tensor has type {type}")
        return Dense(type, self._take(length))

    def _take(self, length: int) -> bytes:
        left = len(self._blob) - self._blob_at
        if length > left:
            raise FormatError(f"{length} bytes of data are announced, but {left} are left")
        self._blob_at += length
        return self._blob[self._blob_at - length : self._blob_at]

    def _location(self, numbers: Numbers) -> None:
        kind = numbers.read()
        if kind == _SINGLE:
            file, line, column, function = numbers.take(4)
            made = Location(self.strings[file], line, column, self.strings[function])
        elif kind == _FUSED:
            made = FusedLocation(tuple([self.locations[i] for i in numbers.take(numbers.count())]))
            if any(isinstance(part, FusedLocation) for part in made.locations):
                raise FormatError("a fused location holds another")
        else:
            raise FormatError(f"there is no kind of location {kind}")
        self.locations.append(made)


_SIMPLE = {_NONE: None, _FALSE: False, _TRUE: True}


def _big_integer(data: bytes) -> int:
    if len(data) > MAX_INTEGER:
        raise FormatError(f"an integer of {len(data)} bytes is beyond the limit of {MAX_INTEGER}")
    return int.from_bytes(data, "little", signed=True)


def _bits(value: float) -> int:
    return int(unpack("<Q", pack("<d", value))[0])


def _float(bits: int) -> float:
    return float(unpack("<d", pack("<Q", bits & (1 << 64) - 1))[0])

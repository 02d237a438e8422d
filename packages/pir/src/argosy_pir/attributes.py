"""Attribute values: plain immutable Python data.

Allowed are ``None``, ``bool``, ``int``, ``float``, ``complex``, ``str``, ``bytes``, tuples, sizes (``Dim``),
types, :class:`Symbol`, :class:`Dense`, and mappings with string keys (kept as :class:`FrozenDict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index

from argosy_pir.dims import SymExpr
from argosy_pir.scalars import encode_scalar
from argosy_pir.types import ITEM_SIZES, FunctionType, OpaqueType, TensorType, TokenType, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    Attribute: TypeAlias = Any


class Symbol:
    """A reference by name to something in the program, such as a function; prints ``@name``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.removeprefix("@"):
            raise ValueError(f"a symbol needs a name, got {name!r}")
        self.name = name.removeprefix("@")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("@", self.name))

    def __repr__(self) -> str:
        return f"Symbol('@{self.name}')"


class Dense:
    """The elements of a constant tensor as bytes: little-endian, row-major, no padding.

    ``data`` holds every element, or one element that stands for all (a *splat*). The shape of ``type`` may be
    symbolic only for a splat. Raises ``ValueError`` where the number of bytes fits neither.
    """

    __slots__ = ("_hash", "data", "type")

    def __init__(self, type: TensorType, data: bytes) -> None:
        if not isinstance(type, TensorType):
            raise TypeError(f"a constant tensor has a TensorType, got {type!r}")
        self.type = type
        self.data = bytes(data)
        self._hash: int | None = None
        self._check()

    @staticmethod
    def splat(type: TensorType, value: bool | int | float | complex) -> Dense:
        """``value`` in every element of ``type``; raises ``ValueError`` where the dtype cannot hold it."""
        return Dense(type, encode_scalar(value, type.dtype))

    @property
    def is_splat(self) -> bool:
        """Whether one stored element stands for all (also true of a one-element tensor)."""
        return len(self.data) == ITEM_SIZES.get(self.type.dtype, -1) and self.type.size != 0

    def _check(self) -> None:
        item = ITEM_SIZES.get(self.type.dtype)
        if item is None or len(self.data) == item:
            return
        count = self.type.size
        if not isinstance(count, int) or count * item != len(self.data):
            expected = f"{item} (one element for all) or {count}*{item}"
            raise ValueError(f"{len(self.data)} bytes do not fill {self.type}: expected {expected}")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dense) and self.type == other.type and self.data == other.data)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.type, self.data))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Dense, (self.type, self.data)

    def __repr__(self) -> str:
        shown = self.data[:16].hex() + ("..." if len(self.data) > 16 else "")
        return f"Dense({self.type}, {shown})"


class FrozenDict(Mapping[str, "Attribute"]):
    """An immutable mapping with string keys; equal to any mapping with equal items."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]] = ()) -> None:
        self._items = {key: normalise(value) for key, value in dict(items).items()}
        self._hash: int | None = None
        for key in self._items:
            if type(key) is not str:
                raise TypeError(f"keys of a mapping attribute are strings, got {key!r}")

    @staticmethod
    def of_normal(items: dict[str, Attribute]) -> FrozenDict:
        """Keep ``items`` themselves, whose values must be normalised already."""
        made = FrozenDict()
        made._items = items
        return made

    def __getitem__(self, key: str) -> Attribute:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (self._items,)

    def __repr__(self) -> str:
        return f"FrozenDict({self._items!r})"


NO_ANNOTATIONS = FrozenDict()
"""The annotations of an operation that has none."""


class Attributes(dict[str, "Attribute"]):
    """The attributes of an operation: a dict that normalises and checks what is put in."""

    __slots__ = ()

    def __init__(self, items: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]] = ()) -> None:
        super().__init__()
        if items:
            self.update(items)

    def __setitem__(self, key: str, value: Attribute) -> None:
        if type(key) is not str:
            raise TypeError(f"attribute names are strings, got {key!r}")
        dict.__setitem__(self, key, value if type(value) in _ATOMIC else normalise(value, key))

    def update(self, items: Any = (), /, **more: Attribute) -> None:
        """Set several attributes, as ``dict.update``."""
        for source in (items, more):
            pairs = source.items() if hasattr(source, "items") else source
            for key, value in pairs:  # type: ignore[str-unpack]
                self[key] = value

    def setdefault(self, key: str, default: Attribute = None) -> Attribute:
        """The attribute ``key``, set to ``default`` where absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, items: Any) -> Attributes:  # type: ignore[override,misc]
        self.update(items)
        return self

    def copy(self) -> Attributes:
        """A shallow copy; values are immutable, so it is as good as a deep one."""
        made = Attributes()
        dict.update(made, self)
        return made


_ATOMIC = frozenset(
    {type(None), bool, int, float, complex, str, bytes, SymExpr, Symbol, Dense, FrozenDict}
    | {TensorType, TokenType, FunctionType, OpaqueType}
)
_PLAIN: tuple[type[Any], ...] = (int, float, complex, str, bytes)


def normalise(value: Any, name: str = "") -> Attribute:
    """``value`` as an attribute: lists become tuples, mappings :class:`FrozenDict`, subclasses of numbers
    the plain number. Raises ``TypeError`` for anything mutable or unknown."""
    kind = type(value)
    if kind in _ATOMIC or isinstance(value, (Type, Symbol, Dense, FrozenDict)):
        return value
    if kind is tuple and all(type(item) in _ATOMIC for item in value):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(normalise(item, name) for item in value)
    if isinstance(value, Mapping):
        return FrozenDict(value)
    for plain in _PLAIN:
        if isinstance(value, plain):
            return plain(value)
    if hasattr(value, "__index__") and not getattr(value, "shape", ()):
        return index(value)
    where = f"attribute '{name}'" if name else "an attribute"
    raise TypeError(
        f"{where} cannot be {kind.__module__}.{kind.__qualname__}: allowed are None, bool, int, float, "
        "complex, str, bytes, tuples, mappings with string keys, sizes, types, Symbol and Dense (for tensors)"
    )


def attribute_key(value: Attribute) -> Any:
    """A hashable key that is equal exactly when two attributes print alike.

    Python's ``==`` will not do: ``1 == True == 1.0``, ``0.0 == -0.0``, and a NaN differs from itself.
    Returns a hashable value.
    """
    kind = type(value)
    if kind is str or kind is int:
        return value if kind is str else (kind, value)
    if kind is float or kind is complex:
        return (kind, repr(value))
    if kind is tuple:
        return tuple([attribute_key(item) for item in value])
    if kind is FrozenDict:
        return (kind, frozenset((key, attribute_key(item)) for key, item in value.items()))
    return (kind, value)


def attributes_key(attributes: Mapping[str, Attribute]) -> Any:
    """:func:`attribute_key` for a whole set of attributes, independent of their order. Returns a frozenset."""
    return frozenset([(key, attribute_key(value)) for key, value in attributes.items()])

"""Types of values. Immutable and hashable; they print in the form the parser reads."""

from __future__ import annotations

from operator import index

from argosy_pir.dims import SymExpr, dim_product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from argosy_pir.dims import Dim

ITEM_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element of the dtypes known here by name; other names are allowed and have no known size."""


class Type:
    """Base of all types. Two types are equal when they have the same class and the same parts."""

    __slots__ = ("_hash", "_parts")
    _parts: tuple[Any, ...]
    _hash: int

    def _init(self, *parts: Any) -> None:
        self._parts = parts
        self._hash = hash((type(self).__name__, parts))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


class TensorType(Type):
    """A dense tensor: a shape of sizes (ints or symbolic) and the name of a dtype."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Iterable[Dim], dtype: str) -> None:
        shape = tuple(shape)
        for size in shape:
            if (type(size) is not int or size < 0) and type(size) is not SymExpr:
                shape = tuple(_check_size(size, shape) for size in shape)
                break
        if type(dtype) is not str or not dtype.isidentifier() or not dtype.isascii():
            raise ValueError(f"a tensor's dtype is the name of one, such as 'float32'; got {dtype!r}")
        self.shape = shape
        self.dtype = dtype
        self._parts = parts = (shape, dtype)
        self._hash = hash(parts)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return dim_product(self.shape)

    @property
    def nbytes(self) -> Dim:
        """Bytes of its elements, contiguous. Raises ``ValueError`` for a dtype unknown to this package."""
        if self.dtype not in ITEM_SIZES:
            raise ValueError(f"the element size of dtype {self.dtype!r} is not known")
        return self.size * ITEM_SIZES[self.dtype]

    @property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return all(type(size) is int for size in self.shape)

    def with_shape(self, shape: Iterable[Dim]) -> TensorType:
        """The same dtype in another shape."""
        return TensorType(shape, self.dtype)

    def __str__(self) -> str:
        return f"tensor<[{', '.join(map(str, self.shape))}], {self.dtype}>"


class TokenType(Type):
    """An effect token: operations that take and give one run in the order of the chain."""

    __slots__ = ()

    def __init__(self) -> None:
        self._init()

    def __str__(self) -> str:
        return "token"


class FunctionType(Type):
    """The types a function takes and gives."""

    __slots__ = ("inputs", "results")

    def __init__(self, inputs: Iterable[Type], results: Iterable[Type]) -> None:
        self.inputs = tuple(inputs)
        self.results = tuple(results)
        self._init(self.inputs, self.results)

    def __str__(self) -> str:
        return f"function<({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.results))})>"


class OpaqueType(Type):
    """A type of another package, known here by its text alone."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"an opaque type is described by text, got {text!r}")
        self.text = text
        self._init(text)

    def __str__(self) -> str:
        from argosy_pir.text.strings import quote

        return f"opaque<{quote(self.text)}>"


def _check_size(size: Any, shape: tuple[Any, ...]) -> Dim:
    if isinstance(size, SymExpr):
        return size
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"sizes of a shape are integers or symbolic sizes, got {size!r} in {shape}")
    number = index(size)
    if number < 0:
        raise ValueError(f"sizes of a shape are not negative, got {number} in {shape}")
    return number

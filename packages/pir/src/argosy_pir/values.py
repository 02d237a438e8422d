"""SSA values: results of operations and arguments of blocks. Equality and hash are identity."""

from __future__ import annotations

from argosy_pir.types import TensorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from argosy_pir.core import Block, Operation
    from argosy_pir.dims import Dim
    from argosy_pir.types import Type

    Use: TypeAlias = "tuple[Operation, int]"


class Value:
    """Something an operation can take as operand. ``name_hint`` is the name it prints with, where that is
    free."""

    __slots__ = ("_uses", "name_hint", "type")
    type: Type
    name_hint: str | None
    _uses: dict[Use, None]

    @property
    def owner(self) -> Operation | Block:
        """The operation or block that defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not define its owner")

    @property
    def uses(self) -> tuple[Use, ...]:
        """Every use as (operation, operand index), oldest first. A snapshot: safe to edit while iterating."""
        return tuple(self._uses)

    @property
    def users(self) -> tuple[Operation, ...]:
        """The operations that use it, each once, oldest use first."""
        return tuple(dict.fromkeys(op for op, _ in self._uses))

    @property
    def has_uses(self) -> bool:
        """Whether any operation takes it."""
        return bool(self._uses)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of a tensor value; raises ``TypeError`` for other types."""
        return self._tensor_type().shape

    @property
    def dtype(self) -> str:
        """The dtype name of a tensor value; raises ``TypeError`` for other types."""
        return self._tensor_type().dtype

    @property
    def ndim(self) -> int:
        """The number of axes of a tensor value; raises ``TypeError`` for other types."""
        return len(self._tensor_type().shape)

    def replace_all_uses_with(self, other: Value) -> None:
        """Make every user take ``other`` instead. The name passes on where ``other`` has none."""
        if other is self:
            return
        for op, index in self._uses:
            op._operands[index] = other
            other._uses[(op, index)] = None
        self._uses.clear()
        if other.name_hint is None:
            other.name_hint = self.name_hint

    def _tensor_type(self) -> TensorType:
        if not isinstance(self.type, TensorType):
            raise TypeError(f"only tensors have shape and dtype, this value is of type {self.type}")
        return self.type

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name_hint or ''}: {self.type}>"

    # With __getitem__ installed, Python would iterate a value for ever by index; and numpy would take
    # arithmetic with its arrays and scalars for itself.
    __iter__ = None
    __array_ufunc__ = None


class OpResult(Value):
    """The ``index``-th result of operation ``op``."""

    __slots__ = ("index", "op")

    def __init__(self, op: Operation, index: int, type: Type, name_hint: str | None = None) -> None:
        self.type = type
        self.name_hint = name_hint
        self._uses = {}
        self.op = op
        self.index = index

    @property
    def owner(self) -> Operation:
        """The operation that defines it."""
        return self.op


class BlockArgument(Value):
    """The ``index``-th argument of ``block``."""

    __slots__ = ("block", "index")

    def __init__(self, block: Block, index: int, type: Type, name_hint: str | None = None) -> None:
        self.type = type
        self.name_hint = name_hint
        self._uses = {}
        self.block = block
        self.index = index

    @property
    def owner(self) -> Block:
        """The block it belongs to."""
        return self.block


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
VALUE_OPERATORS = (
    *(f"__{name}__" for name in _BINARY),
    *(f"__r{name}__" for name in _BINARY),
    *"__neg__ __pos__ __abs__ __invert__ __lt__ __le__ __gt__ __ge__ __getitem__".split(),
)
"""The special methods that :func:`set_value_operators` can give to values. Equality always means identity."""


def set_value_operators(table: Mapping[str, Callable[..., Any]]) -> None:
    """Give values Python operators: ``table`` maps special method names (``"__add__"``) to functions.

    Names of :data:`VALUE_OPERATORS` missing from the table go back to raising a ``TypeError`` that says who
    provides them; so an empty table removes all. The package argosy-phi-ops installs its primitives here.
    """
    unknown = sorted(set(table) - set(VALUE_OPERATORS))
    if unknown:
        raise ValueError(f"not operators of values: {', '.join(unknown)}; allowed are {', '.join(VALUE_OPERATORS)}")
    for name in VALUE_OPERATORS:
        setattr(Value, name, table.get(name) or _refuse_operator(name))


def _refuse_operator(name: str) -> Callable[..., Any]:
    def refuse(self: Value, *others: object) -> Any:
        raise TypeError(
            f"{name} on a program's value has no meaning yet: argosy_phi_ops provides operators on values "
            "(import it first), or build the operation with a Builder"
        )

    return refuse


set_value_operators({})

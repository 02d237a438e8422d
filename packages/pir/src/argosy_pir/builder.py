"""The builder: makes operations at a place, infers their result types and checks them at once."""

from __future__ import annotations

from argosy_pir.attributes import NO_ANNOTATIONS, Attributes, Dense, FrozenDict
from argosy_pir.core import Block, Operation
from argosy_pir.dialect import check_operation, get_definition
from argosy_pir.errors import IRError
from argosy_pir.types import TensorType
from argosy_pir.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from argosy_pir.attributes import Attribute
    from argosy_pir.core import Region
    from argosy_pir.location import Location
    from argosy_pir.types import Type


class Builder:
    """Creates operations in ``block``, before the operation ``before`` or at the end.

    ``location`` is given to every operation that gets none of its own, ``annotations`` to every operation.
    """

    __slots__ = ("_before", "annotations", "block", "location")

    def __init__(
        self, block: Block, before: Operation | None = None, location: Location | None = None,
        annotations: FrozenDict = NO_ANNOTATIONS,
    ) -> None:  # fmt: skip
        self.block = block
        self._before = before
        self.location = location
        self.annotations = annotations

    @staticmethod
    def at_end(block: Block) -> Builder:
        """A builder that appends to ``block``."""
        return Builder(block)

    @staticmethod
    def at_start(block: Block) -> Builder:
        """A builder that inserts before what ``block`` holds now."""
        return Builder(block, block.first)

    @staticmethod
    def before(op: Operation) -> Builder:
        """A builder that inserts before ``op``, with its location and annotations."""
        return Builder(_block_of(op), op, op.location, op.annotations)

    @staticmethod
    def after(op: Operation) -> Builder:
        """A builder that inserts after ``op``, in order of creation, with its location and annotations."""
        return Builder(_block_of(op), op.next, op.location, op.annotations)

    def create(
        self,
        name: str,
        operands: Iterable[Value] = (),
        attributes: Mapping[str, Attribute] | None = None,
        result_types: Iterable[Type] | None = None,
        regions: Iterable[Region] = (),
        location: Location | None = None,
        inferred: bool = False,
    ) -> Operation:
        """Make and insert an operation; its results are ``.results``, a single one ``.result``.

        ``inferred``: ``result_types`` come from the dialect's own rule and are not checked again. Without
        ``result_types`` its dialect infers them, and what that raises for operands that do not fit comes through.
        Raises ``VerifyError`` where the operation breaks its description.
        """
        operands = tuple(operands)
        regions = tuple(regions)
        if result_types is None:
            attributes, inferred = Attributes(attributes or {}), True
            result_types = _infer(name, operands, attributes, regions)
        op = Operation(name, operands, result_types, attributes, regions, location or self.location)
        op.annotations = self.annotations
        try:
            check_operation(op, inferred)
        except IRError:
            op.drop()
            raise
        return self.block.insert_before(self._before, op)

    def insert(self, op: Operation) -> Operation:
        """Insert a detached operation here."""
        return self.block.insert_before(self._before, op)

    def inline(self, block: Block, mapping: dict[Value, Value]) -> list[Value]:
        """Insert copies of a block's operations, see :meth:`Block.inline_into`."""
        return block.inline_into(self.block, self._before, mapping)

    def constant(
        self,
        type: TensorType,
        data: Dense | bytes | bool | int | float | complex,
        location: Location | None = None,
    ) -> Value:
        """A ``builtin.constant`` of ``type``: from little-endian bytes (all elements, or one for all), or a
        number for all elements."""
        if not isinstance(data, Dense):
            data = Dense(type, data) if isinstance(data, (bytes, bytearray)) else Dense.splat(type, data)
        elif data.type != type:
            raise IRError(f"constant data of type {data.type} given for type {type}")
        return self.create("builtin.constant", (), {"value": data}, (type,), (), location).result


def _infer(
    name: str, operands: tuple[Value, ...], attributes: Attributes, regions: tuple[Region, ...]
) -> Iterable[Type]:
    definition = get_definition(name)
    if definition is None:
        raise IRError(f"operation '{name}' is not known here, so its result types must be given")
    return definition.infer_types([value.type for value in operands], attributes, regions)


def _block_of(op: Operation) -> Block:
    if op.parent is None:
        raise IRError(f"'{op.name}' is in no block, so nothing can be inserted next to it")
    return op.parent

"""The structure of programs: operations in blocks in regions.

An operation owns its results, attributes and regions and knows the block it sits in. Blocks keep their
operations in an intrusive doubly linked list, so inserting, moving and erasing cost O(1) and are safe while
iterating. Each value keeps its uses, and every change of an operand goes through the operation so that both
sides always agree.
"""

from __future__ import annotations

from argosy_pir.attributes import NO_ANNOTATIONS, Attributes, FrozenDict
from argosy_pir.errors import IRError
from argosy_pir.location import UNKNOWN, Location
from argosy_pir.values import BlockArgument, OpResult, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from argosy_pir.attributes import Attribute
    from argosy_pir.program import Function, Program
    from argosy_pir.types import Type

_STRIDE = 1 << 40  # between the numbers of operations, so that most insertions find one between two


class Operation:
    """One operation: ``results = name(operands) {attributes} (regions)``.

    Made detached; a block (or better, a ``Builder``) gives it a place. ``name`` is ``"dialect.operation"``.

    ``attributes`` are what the operation means. ``annotations``, like ``location``, are what passes note about it, such
    as a stage of a pipeline: kernels, keys and rules of types do not see them (MLIR: discardable attributes). They are
    replaced as a whole, never changed in place.
    """

    __slots__ = (
        "_next", "_operands", "_order", "_previous", "annotations", "attributes", "location", "name", "parent",
        "regions", "results",
    )  # fmt: skip
    annotations: FrozenDict
    parent: Block | None
    _next: Operation | None
    _previous: Operation | None

    def __init__(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Iterable[Region] = (),
        location: Location | None = None,
    ) -> None:
        self.name = name
        self._operands = list(operands)
        self.attributes = Attributes(attributes) if attributes else Attributes()
        self.results = tuple([OpResult(self, i, t) for i, t in enumerate(result_types)])
        self.regions = tuple(regions) if regions else ()
        self.location = location or UNKNOWN
        self.annotations = NO_ANNOTATIONS
        self.parent = self._next = self._previous = None
        self._order = 0
        for i, value in enumerate(self._operands):
            if not isinstance(value, Value):
                raise TypeError(f"operand {i} of '{name}' is a {type(value).__name__}, expected a Value")
            value._uses[(self, i)] = None
        for region in self.regions:
            if region.parent is not None:
                raise IRError(f"a region given to '{name}' already belongs to {region.parent!r}")
            region.parent = self

    # Operands and results

    @property
    def operands(self) -> tuple[Value, ...]:
        """The values it takes; change them with :meth:`set_operand` or :meth:`set_operands`."""
        return tuple(self._operands)

    @property
    def result(self) -> OpResult:
        """The only result; raises ``IRError`` where there is none or several."""
        results = self.results
        if len(results) != 1:
            raise IRError(f"'{self.name}' has {len(results)} results, not one; use .results")
        return results[0]

    def operand(self, index: int) -> Value:
        """The ``index``-th operand."""
        return self._operands[index]

    def set_operand(self, index: int, value: Value) -> None:
        """Take ``value`` as the ``index``-th operand instead."""
        index = range(len(self._operands))[index]
        del self._operands[index]._uses[(self, index)]
        self._operands[index] = value
        value._uses[(self, index)] = None

    def set_operands(self, values: Iterable[Value]) -> None:
        """Take ``values`` as operands; their number may change."""
        made = list(values)
        self._drop_uses()
        self._operands = made
        for i, value in enumerate(made):
            value._uses[(self, i)] = None

    def _drop_uses(self) -> None:
        for i, value in enumerate(self._operands):
            del value._uses[(self, i)]
        self._operands = []

    # Place

    @property
    def dialect(self) -> str:
        """The part of the name before the first dot."""
        return self.name.partition(".")[0]

    @property
    def kind(self) -> str:
        """The name within its dialect: what follows the first dot."""
        return self.name.partition(".")[2]

    @property
    def next(self) -> Operation | None:
        """The operation after this one in its block."""
        return self._next if self.parent is not None else None

    @property
    def previous(self) -> Operation | None:
        """The operation before this one in its block."""
        return self._previous if self.parent is not None else None

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region holds this one, if any."""
        region = self.parent.parent if self.parent is not None else None
        return region.parent if region is not None and isinstance(region.parent, Operation) else None

    def is_before(self, other: Operation) -> bool:
        """Whether this comes before ``other`` in the block that both are in."""
        if self.parent is None or self.parent is not other.parent:
            raise IRError(f"'{self.name}' and '{other.name}' are not in the same block")
        if not self.parent._numbered:
            self.parent._number()
        return self._order < other._order

    def is_ancestor_of(self, other: Operation) -> bool:
        """Whether ``other`` is this operation or lies in its regions."""
        current: Operation | None = other
        while current is not None and current is not self:
            current = current.parent_op
        return current is self

    def detach(self) -> None:
        """Take it out of its block, keeping operands and results; it can be inserted again."""
        if self.parent is not None:
            self.parent._unlink(self)

    def move_before(self, other: Operation) -> None:
        """Move it to just before ``other``, possibly in another block."""
        if other is not self:
            block = _block_of(other)
            self.detach()
            block.insert_before(other, self)

    def move_after(self, other: Operation) -> None:
        """Move it to just after ``other``, possibly in another block."""
        if other is not self:
            block = _block_of(other)
            self.detach()
            block._link(self, other, other._next)

    def erase(self) -> None:
        """Remove it and everything in its regions; raises ``IRError`` while a result is used."""
        for result in self.results:
            if result._uses:
                user = next(iter(result._uses))[0]
                raise IRError(f"cannot erase '{self.name}': result {result.index} is used by '{user.name}'")
        self.detach()
        self.drop()

    def drop(self) -> None:
        """Let go of all operands, here and in the regions (for a tree that goes as a whole)."""
        self._drop_uses()
        for region in self.regions:
            for block in region.blocks:
                for op in block:
                    op.drop()

    def replace_with(self, values: Sequence[Value]) -> None:
        """Give ``values`` to all users of the results, in order, and erase the operation."""
        if len(values) != len(self.results):
            raise IRError(f"'{self.name}' has {len(self.results)} results but {len(values)} replacements")
        for result, value in zip(self.results, values, strict=True):
            result.replace_all_uses_with(value)
        self.erase()

    def annotate(self, **annotations: Attribute) -> None:
        """Note ``annotations`` beside those that are there."""
        self.annotations = FrozenDict({**self.annotations, **annotations})

    # Whole trees

    def walk(self) -> Iterator[Operation]:
        """This operation and all in its regions, pre-order. The current one may be erased."""
        yield self
        for region in self.regions:
            yield from region.walk()

    def clone(self, mapping: dict[Value, Value] | None = None) -> Operation:
        """A detached copy with its regions. Operands found in ``mapping`` are replaced, others kept; the
        results and the regions' block arguments are added to ``mapping``."""
        mapping = {} if mapping is None else mapping
        made = Operation.__new__(Operation)
        made.name = self.name
        made.location = self.location
        made.annotations = self.annotations
        made.attributes = self.attributes.copy()
        made.parent = made._next = made._previous = None
        made._order = 0
        made._operands = operands = [mapping.get(value, value) for value in self._operands]
        for i, value in enumerate(operands):
            value._uses[(made, i)] = None
        made.results = tuple([OpResult(made, r.index, r.type, r.name_hint) for r in self.results])
        for old, new in zip(self.results, made.results, strict=True):
            mapping[old] = new
        made.regions = tuple([region.clone(mapping) for region in self.regions]) if self.regions else ()
        for region in made.regions:
            region.parent = made
        return made

    def __str__(self) -> str:
        from argosy_pir.text.printer import print_operation

        return print_operation(self)

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"


class Block:
    """A list of operations with typed arguments; iterable, in both directions, also while it changes.

    Iteration goes on with the operation that followed when the current one was reached, or the next one
    after it that is still in the block.
    """

    __slots__ = ("_count", "_first", "_last", "_numbered", "arguments", "parent")
    arguments: tuple[BlockArgument, ...]
    _first: Operation | None
    _last: Operation | None

    def __init__(self, argument_types: Iterable[Type] = (), parent: Region | None = None) -> None:
        self.parent = parent
        self.arguments = tuple([BlockArgument(self, i, t) for i, t in enumerate(argument_types)])
        self._first = self._last = None
        self._count = 0
        self._numbered = True

    @property
    def operations(self) -> OperationList:
        """The operations, in order."""
        return OperationList(self)

    @property
    def first(self) -> Operation | None:
        """The first operation."""
        return self._first

    @property
    def last(self) -> Operation | None:
        """The last operation; in a finished block its terminator."""
        return self._last

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region this block is in, if any."""
        owner = self.parent.parent if self.parent is not None else None
        return owner if isinstance(owner, Operation) else None

    def add_argument(self, type: Type, name_hint: str | None = None, index: int | None = None) -> BlockArgument:
        """Add an argument at ``index`` (by default the end); those after it move up."""
        if index is None or index == len(self.arguments):  # the others keep their places
            made = BlockArgument(self, len(self.arguments), type, name_hint)
            self.arguments = (*self.arguments, made)
            return made
        arguments = list(self.arguments)
        made = BlockArgument(self, 0, type, name_hint)
        arguments.insert(index, made)
        self._set_arguments(arguments)
        return made

    def erase_argument(self, index: int) -> None:
        """Remove the ``index``-th argument; raises ``IRError`` while it is used."""
        arguments = list(self.arguments)
        gone = arguments.pop(index)
        if gone._uses:
            user = next(iter(gone._uses))[0]
            raise IRError(f"cannot erase block argument {index}: it is used by '{user.name}'")
        self._set_arguments(arguments)

    def _set_arguments(self, arguments: list[BlockArgument]) -> None:
        for i, argument in enumerate(arguments):
            argument.index = i
        self.arguments = tuple(arguments)

    def append(self, op: Operation) -> Operation:
        """Add ``op`` (detached) at the end."""
        self._link(op, self._last, None)
        return op

    def insert_before(self, before: Operation | None, op: Operation) -> Operation:
        """Add ``op`` (detached) before ``before``, an operation of this block, or at the end for None."""
        if before is None:
            return self.append(op)
        if before.parent is not self:
            raise IRError(f"'{before.name}' is not in the block that '{op.name}' is inserted into")
        self._link(op, before._previous, before)
        return op

    def _link(self, op: Operation, previous: Operation | None, following: Operation | None) -> None:
        if op.parent is not None:
            raise IRError(f"'{op.name}' already sits in a block; detach or move it")
        op.parent, op._previous, op._next = self, previous, following
        if previous is None:
            self._first = op
        else:
            previous._next = op
        if following is None:
            self._last = op
            op._order = previous._order + _STRIDE if previous is not None else 0
        else:
            following._previous = op
            gap = following._order - previous._order if previous is not None else _STRIDE
            op._order = following._order - gap + max(gap >> 3, 1)  # others often follow it there
            self._numbered = self._numbered and op._order < following._order
        self._count += 1

    def _unlink(self, op: Operation) -> None:
        previous, following = op._previous, op._next
        if previous is None:
            self._first = following
        else:
            previous._next = following
        if following is None:
            self._last = previous
        else:
            following._previous = previous
        op.parent = None  # its links stay, so that an iteration that waits on it finds its way
        self._count -= 1

    def _number(self) -> None:
        for i, op in enumerate(self):
            op._order = i * _STRIDE
        self._numbered = True

    def clone_into(self, target: Block, mapping: dict[Value, Value]) -> None:
        """Append copies of all operations to ``target``; ``mapping`` as in :meth:`Operation.clone`."""
        op = self._first
        while op is not None:
            target._link(op.clone(mapping), target._last, None)
            op = op._next

    def inline_into(
        self, target: Block, before: Operation | None, mapping: dict[Value, Value], location: Location | None = None
    ) -> list[Value]:
        """Copy all operations but the terminator into ``target``, before ``before`` or at the end for None; returns
        what the terminator takes, as it is there.

        ``mapping`` says what stands for the arguments, and takes in the copies; ``location`` joins their own.
        """
        last = self._last
        if last is None:
            raise IRError("a block without a terminator cannot be inlined")
        op = self._first
        while op is not last and op is not None:
            copy = target.insert_before(before, op.clone(mapping))
            if location is not None:
                for inner in copy.walk():
                    inner.location = Location.fuse([inner.location, location])
            op = op._next
        return [mapping.get(value, value) for value in last._operands]

    def walk(self) -> Iterator[Operation]:
        """All operations here and in their regions, pre-order."""
        for op in self:
            yield op
            for region in op.regions:
                yield from region.walk()

    def __iter__(self) -> Iterator[Operation]:
        op = self._first
        while op is not None:
            following = op._next
            yield op
            while following is not None and following.parent is not self:
                following = following._next
            op = following

    def __reversed__(self) -> Iterator[Operation]:
        op = self._last
        while op is not None:
            following = op._previous
            yield op
            while following is not None and following.parent is not self:
                following = following._previous
            op = following

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Block of {self._count} operations>"


class OperationList:
    """A view of a block's operations: iterable both ways, sized; indexing walks the list."""

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._block)

    def __reversed__(self) -> Iterator[Operation]:
        return reversed(self._block)

    def __len__(self) -> int:
        return self._block._count

    def __contains__(self, op: object) -> bool:
        return isinstance(op, Operation) and op.parent is self._block

    def __getitem__(self, index: int) -> Operation:
        position = range(len(self))[index]
        for i, op in enumerate(self._block):
            if i == position:
                return op
        raise IndexError(f"operation {index} of a block of {len(self)}")


class Region:
    """A list of blocks owned by an operation, a function or a program. Every shipped dialect uses one
    block."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | Function | Program | None = None
        for block in blocks:
            self.append(block)

    @property
    def block(self) -> Block:
        """The only block; raises ``IRError`` where there is none or several."""
        if len(self.blocks) != 1:
            raise IRError(f"a region with {len(self.blocks)} blocks, expected one")
        return self.blocks[0]

    def append(self, block: Block) -> Block:
        """Add a block that is in no region yet."""
        if block.parent is not None:
            raise IRError("the block already belongs to a region")
        block.parent = self
        self.blocks.append(block)
        return block

    def walk(self) -> Iterator[Operation]:
        """All operations in it, pre-order."""
        for block in self.blocks:
            yield from block.walk()

    def clone(self, mapping: dict[Value, Value]) -> Region:
        """A copy with its blocks; their arguments are added to ``mapping``."""
        made = Region()
        for block in self.blocks:
            copy = made.append(Block([argument.type for argument in block.arguments]))
            for old, new in zip(block.arguments, copy.arguments, strict=True):
                new.name_hint = old.name_hint
                mapping[old] = new
        for block, copy in zip(self.blocks, made.blocks, strict=True):
            block.clone_into(copy, mapping)
        return made

    def __repr__(self) -> str:
        return f"<Region of {len(self.blocks)} blocks>"


def _block_of(op: Operation) -> Block:
    if op.parent is None:
        raise IRError(f"'{op.name}' is in no block")
    return op.parent

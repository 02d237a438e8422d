"""Groups as expressions over loop variables, and what they read from memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.indices import Index, Position, Variable, atom_index, linearise
from argosy_cinn.forms.product import Product
from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.fusion.structure import Structures
from argosy_cinn.lowering.classify import reduction_axes
from argosy_cinn.lowering.elements import ElementLowering, NotAligned, scatter_position
from argosy_cinn.shapes import at_least_one
from argosy_pir.values import OpResult, Value

#: Vectors over fewer elements than this waste more lanes than lookups lane by lane cost.
SMALLEST_LANES = 8
_MOST_NODES = 900

#: Where a value is read: at its own cell of the grid, or in its own row.
_GRID, _ROW = 1, 2
#: Where members of each flavour may be read.
_READ = {"full": _GRID, "product": _GRID, "row": _ROW, "sum": _ROW}


@dataclass(slots=True)
class Reads:
    """What a group reads from memory: for each value the flavours (`_GRID`, `_ROW`) that a member has to have where it
    is read, so that it could be computed in the group; none where its elements are needed elsewhere. ``nodes`` bounds
    the expressions of the group from above; None where its members do not fit together."""

    places: dict[Value, int]
    nodes: int | None


class KnownReads:
    """What groups read from memory. What two groups read together follows from what each reads on their joint grid. A
    group on a grid is lowered once for each structure, since blocks of a program repeat, and looked up once, since
    programs are fused again when values left memory: what is known of a group holds as long as all that it loads is in
    memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._structures = memory, Structures(memory.values)
        self._known: dict[Any, Reads] = {}
        self._alike: dict[Any, tuple[list[tuple[int, int]], int | None]] = {}  # the same by numbers in a structure
        self.lowered = 0

    def find_reads(self, group: Group) -> set[Value]:
        """What the group reads. Raises `NotAligned` where its members do not fit together."""
        return _places_of_reads(self._reads_of(group, group.members)).keys() - group.members

    def find_joint_reads(self, group: Group, first: Group, second: Group) -> set[Value]:
        """What the group reads that joins two, of which the second may read what the first makes. Raises `NotAligned`
        where their members do not fit together."""
        key = _key(group, group.members)
        found = self._known.get(key)
        if found is None or not found.places.keys() <= self._memory.values.keys():
            found = self._known[key] = self._join(group, first, second)
        return _places_of_reads(found).keys() - group.members

    def _join(self, group: Group, first: Group, second: Group) -> Reads:
        earlier, later = (self._reads_of(group, {v: group.members[v] for v in one.members}) for one in (first, second))
        places = dict(earlier.places)
        nodes = None if earlier.nodes is None or later.nodes is None else earlier.nodes + later.nodes
        for value, flavours in later.places.items():
            if value not in first.members:
                places[value] = places.get(value, flavours) & flavours
            elif not flavours & _READ.get(group.members[value], 0):
                nodes = None
        if nodes is not None and nodes > _MOST_NODES:
            return self._reads_of(group, group.members)
        return Reads(places, nodes)

    def _reads_of(self, grid: Group, members: dict[Value, str]) -> Reads:
        """What some members of a group read on its grid."""
        key = _key(grid, members)
        found = self._known.get(key)
        if found is None or not found.places.keys() <= self._memory.values.keys():
            found = self._known[key] = self._find(replace(grid, members=members))
        return found

    def _find(self, group: Group) -> Reads:
        structure, values = self._structures.structure_of(group)
        alike = self._alike.get(structure)
        if alike is not None:
            return Reads({values[i]: flavours for i, flavours in alike[0]}, alike[1])
        found = self._lower(group)
        numbers = {value: i for i, value in enumerate(values)}
        self._alike[structure] = [(numbers[v], flavours) for v, flavours in found.places.items()], found.nodes
        return found

    def _lower(self, group: Group) -> Reads:
        self.lowered += 1
        lowering = GridLowering(group, self._memory.values, split=False)
        try:
            lowering.lower()
        except NotAligned:
            return Reads(lowering.places, None)
        return Reads(lowering.places, len(lowering.graph.order))


def _key(grid: Group, members: dict[Value, str]) -> Any:
    return tuple(members.items()), grid.rows, grid.columns, grid.op if grid.product is not None else None


def _places_of_reads(reads: Reads) -> dict[Value, int]:
    if reads.nodes is None:
        raise NotAligned("members do not fit together")
    return reads.places


class GridLowering:
    """Expressions of all members of a group over loop variables.

    ``outer`` and ``inner`` are the extents that rows and columns are split into; `SplitVariable` names one of them.
    """

    def __init__(
        self,
        group: Group,
        in_memory: dict[Value, None],
        split: bool,
        outer: list[int] | None = None,
        inner: list[int] | None = None,
        middle: list[int] | None = None,
    ) -> None:
        self.group, self.graph = group, Graph()
        self.middle: list[Variable] = []
        if group.product is not None:
            self._product_variables(group.product)
        else:
            outer = [group.rows] if outer is None and group.columns else outer or []
            inner = [group.columns or group.rows] if inner is None else inner
            strided = bool({"strided", "scan"} & set(group.members.values()))
            middle = ([prod(self._layout_sizes())] if middle is None else middle) if strided else []
            numbers = iter(range(len(outer) + len(middle) + len(inner)))
            self.outer = [Variable(next(numbers), n) for n in outer]
            self.middle.extend(Variable(next(numbers), n) for n in middle)
            lane = len(inner) - 1
            self.inner = [Variable(next(numbers), n, SMALLEST_LANES if i == lane else 1) for i, n in enumerate(inner)]
            self.row = _mix(self.outer)
            self.column = _mix(self.inner)
            self.flat = self.row * at_least_one(prod(inner)) + self.column
        self.places: dict[Value, int] = {}  # as in `Reads`
        if group.product is not None:
            self.places.update(dict.fromkeys(group.product.buffers, 0))
        self.results: dict[Value, Expression] = {}
        self.bodies: dict[Value, Expression] = {}
        self.updates: dict[Value, tuple[Expression, Index, Expression | None]] = {}
        self.scanned = Index(())
        self.lowering = ElementLowering(self.graph, in_memory, self._resolve, split)

    def _layout_sizes(self) -> list[int]:
        (value,) = self.group.members
        assert isinstance(value, OpResult)
        layout = reduction_axes(value.op)
        assert layout is not None
        return [layout.reduced]

    def _product_variables(self, product: Product) -> None:
        self.outer = product.variables()[:-1]
        self.inner = product.variables()[-1:]
        self.flat = product.result_index(product.variables())
        self.row, self.column = self.flat, atom_index(self.inner[0])

    def lower(self) -> None:
        """Lower every member."""
        for value, flavour in self.group.members.items():
            if flavour in ("full", "product"):
                self._value(value, self.flat)
            elif flavour == "row":
                self._value(value, self.row)
            elif flavour == "update":
                self._update(value)
            else:
                self._reduction(value)
            if len(self.graph.order) > _MOST_NODES and len(self.group.members) > 1:
                raise NotAligned("the kernel would become too large")

    def _value(self, value: Value, flat: Index) -> Expression:
        found = self.results.get(value)
        if found is None:
            found = self._member_expression(value, self.lowering.position(value, flat))
        return found

    def _member_expression(self, value: Value, position: Position) -> Expression:
        """The expression of a member at its own place on the grid."""
        found = self.results.get(value)
        if found is not None:
            return found
        flavour = self.group.members[value]
        if flavour == "product":
            found = self.graph.node("cell", value.dtype, (), ())
            found.variables |= sum(v.variables for v in (*self.outer, *self.inner))
        elif flavour in ("sum", "strided"):
            found = self._reduction(value)
        else:
            guards, self.lowering.guards = self.lowering.guards, ()
            found = (
                self.lowering.operation(value, position) if not _is_constant(value) else self._constant(value, position)
            )
            self.lowering.guards = guards
        self.results[value] = found
        return found

    def _constant(self, value: Value, position: Position) -> Expression:
        return self.lowering.value(value, position)

    def _resolve(self, value: Value, position: Position) -> Expression | None:
        flavour = self.group.members.get(value)
        if flavour is None:
            if value in self.lowering.in_memory:
                self.places[value] = self.places.get(value, _GRID | _ROW) & self._flavours_at(position)
            return None
        if not self._flavours_at(position) & _READ.get(flavour, 0):
            raise NotAligned(f"{value}, of the flavour '{flavour}', is read at {position.flat_index}")
        return self._member_expression(value, position)

    def _flavours_at(self, position: Position) -> int:
        place = position.flat_index
        return (_GRID if place == self.flat else 0) | (_ROW if place == self.row else 0)

    def _update(self, value: Value) -> None:
        """Where and what an update writes."""
        assert isinstance(value, OpResult)
        written = value.op.operand(1 if value.op.name == "prim.dynamic_update_slice" else 2)
        node, place, condition = scatter_position(self.lowering, value.op, self.lowering.position(written, self.flat))
        self.updates[value] = (node, place.flat_index, condition)

    def _reduction(self, value: Value) -> Expression:
        """A reduction's body, and the node of its result."""
        found = self.results.get(value)
        if found is not None:
            return found
        assert isinstance(value, OpResult)
        flavour = self.group.members[value]
        operand = value.op.operand(0)
        flat = self.flat
        if flavour in ("strided", "scan"):
            reduced, kept = prod(v.extent for v in self.middle), prod(v.extent for v in self.inner)
            along = _mix(self.middle)
            if flavour == "scan" and value.op.attributes["reverse"]:
                along = along * -1 + (reduced - 1)
            flat = self.scanned = (self.row * reduced + along) * kept + self.column
        guards, self.lowering.guards = self.lowering.guards, ()
        body = self.lowering.value(operand, self.lowering.position(operand, flat))
        self.lowering.guards = guards
        self.bodies[value] = body
        if flavour == "column":
            return body
        variables = self.row.variables | (self.column.variables if flavour != "sum" else 0)
        variables |= sum(v.variables for v in self.middle) if flavour == "scan" else 0
        made = self.graph.reduction_result(len(self.bodies), value.dtype, variables, body.level + 1)
        self.results[value] = made
        return made


def _is_constant(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == "builtin.constant"


def _mix(variables: list[Variable]) -> Index:
    return linearise([atom_index(v) for v in variables], [v.extent for v in variables])

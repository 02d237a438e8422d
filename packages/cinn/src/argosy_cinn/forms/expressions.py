"""Scalar expressions: what one element of a tensor is, in terms of loop variables, loads and reductions.

Nodes are hash-consed in a `Graph`: equal expressions are one node, so that what several results of a kernel share is
computed once. A graph also has a canonical text (`Graph.key`) in which buffers are numbered by first use; kernels with
equal text are one function.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from argosy_cinn.forms.indices import Atom, Index, Lookup, Quotient, Remainder
from argosy_cinn.shapes import count, surely_at_least, surely_less
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value


class Expression:
    """One node.

    ``kind`` is the name of an elementwise primitive, or one of these: ``load`` (payload: buffer, flat index; arguments:
    conditions that must hold for the element to exist), ``constant`` (payload: bytes of the element), ``index``
    (payload: index), ``within`` (payload: index, low, high: whether low <= index < high), ``rng_bits`` (payload: index,
    counter), ``cell`` (an element of a matrix product) and ``reduced`` (payload: number of the reduction).
    ``variables`` is a bit mask of the loop variables it depends on, ``level`` the number of reductions that must be
    complete before it can be computed.
    """

    __slots__ = ("arguments", "dtype", "kind", "level", "number", "payload", "variables")

    def __init__(
        self,
        number: int,
        kind: str,
        dtype: str,
        arguments: tuple[Expression, ...],
        payload: Any,
        variables: int,
        level: int,
    ) -> None:
        self.number, self.kind, self.dtype, self.arguments, self.payload = number, kind, dtype, arguments, payload
        self.variables, self.level = variables, level

    def __repr__(self) -> str:
        return f"%{self.number}:{self.kind}"


def lookups(index: Index) -> list[Lookup]:
    """The run-time integers in an index, nested ones included."""
    found: list[Lookup] = []
    for atom, _ in index.terms:
        if isinstance(atom, Lookup):
            found.append(atom)
        elif isinstance(atom, (Quotient, Remainder)):
            found += lookups(atom.index)
    return found


def children(node: Expression) -> list[Expression]:
    """Everything a node is computed from: its arguments and the run-time integers in its index."""
    if node.kind in ("load", "index", "within", "rng_bits"):
        index: Index = node.payload[1] if node.kind == "load" else node.payload[0]
        return [*node.arguments, *(atom.expression for atom in lookups(index))]
    return list(node.arguments)


class Graph:
    """The expressions of one kernel."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Expression] = {}
        self.order: list[Expression] = []
        self._origins: dict[Any, int] | None = None

    def node(self, kind: str, dtype: str, arguments: Sequence[Expression] = (), payload: Any = None) -> Expression:
        """The node of these parts; ``payload`` must be hashable."""
        key = (kind, dtype, tuple([a.number for a in arguments]), payload)
        found = self._nodes.get(key)
        if found is None:
            variables, level = 0, 0
            for a in arguments:
                variables |= a.variables
                level = max(level, a.level)
            found = Expression(len(self.order), kind, dtype, tuple(arguments), payload, variables, level)
            self._nodes[key] = found
            self.order.append(found)
        return found

    def load(self, buffer: Any, index: Index, dtype: str, guards: Sequence[Expression]) -> Expression:
        """An element of a buffer. ``guards``: conditions under which the element exists; elsewhere the value is
        unused."""
        node = self.node("load", dtype, guards, (buffer, index))
        node.variables |= index.variables
        node.level = max([node.level, *(atom.expression.level for atom in lookups(index))])
        return node

    def index(self, index: Index, dtype: str = "int64") -> Expression:
        """An index as a number."""
        node = self.node("index", dtype, (), (index,))
        node.variables |= index.variables
        node.level = max([node.level, *(atom.expression.level for atom in lookups(index))])
        return node

    def random(self, index: Index, counter: int, seed: Expression, offset: Expression) -> Expression:
        """Word ``index`` of random draw ``offset + counter`` of ``seed``."""
        node = self.node("rng_bits", "uint32", (seed, offset), (index, counter))
        node.variables |= index.variables
        node.level = max([node.level, *(atom.expression.level for atom in lookups(index))])
        return node

    def bounds_check(self, index: Index, low: int, high: int) -> Expression | None:
        """Whether ``low <= index < high``; None where that always holds."""
        if surely_at_least(index.low, low) and surely_less(index.high, high):
            return None
        node = self.node("within", "bool", (), (index, low, high))
        node.variables |= index.variables
        node.level = max([node.level, *(atom.expression.level for atom in lookups(index))])
        return node

    def reduction_result(self, number: int, dtype: str, variables: int, level: int) -> Expression:
        """The result of reduction ``number``, which depends on the given loop variables."""
        node = self.node("reduced", dtype, (), number)
        node.variables, node.level = variables, level
        return node

    def rebase_loads(self, kept: Container[Any]) -> dict[Any, int]:
        """Count what is loaded from the first element that is, of each buffer but those ``kept``: how many bytes lie
        before it, of those where any do. Kernels that read parts of buffers at other places are one function then.
        Nothing is to be added to the graph, or compared with other indices, after that."""
        if self._origins is None:
            loads: dict[Value, list[Expression]] = {}
            for node in self.order:
                if node.kind == "load" and isinstance(node.payload[0], Value) and node.payload[0] not in kept:
                    loads.setdefault(node.payload[0], []).append(node)
            self._origins = {}
            for buffer, nodes in loads.items():
                first = min([node.payload[1].constant for node in nodes])
                if 0 < first < count(buffer):
                    self._origins[buffer] = first * ITEM_SIZES[nodes[0].dtype]
                    for node in nodes:
                        node.payload = (buffer, node.payload[1] + -first)
        return self._origins


def loaded_buffers(graph: Graph) -> set[Any]:
    """The buffers that expressions read."""
    return {node.payload[0] for node in graph.order if node.kind == "load"}


def describe(nodes: Sequence[Expression], slots: dict[Any, int]) -> str:
    """Canonical text of expressions; ``slots`` numbers buffers by first use and is filled here."""
    names: dict[int, int] = {}
    lines: list[str] = []

    def visit(node: Expression) -> int:
        if node.number in names:
            return names[node.number]
        inner = [visit(child) for child in children(node)]
        payload: Any = node.payload
        if node.kind == "load":
            buffer, index = payload
            payload = (slots.setdefault(buffer, len(slots)), _index_text(index, names))
        elif node.kind in ("index", "within", "rng_bits"):
            payload = (_index_text(payload[0], names), *payload[1:])
        names[node.number] = len(names)
        lines.append(f"{node.kind} {node.dtype} {payload} {inner}")
        return names[node.number]

    roots = [visit(node) for node in nodes]
    return "\n".join([*lines, str(roots)])


def index_text(index: Index) -> str:
    """An index with its run-time integers by their own numbers, for kernels that are not shared across graphs."""
    return _index_text(index, {atom.expression.number: atom.expression.number for atom in lookups(index)})


def _index_text(index: Index, names: dict[int, int]) -> str:
    return f"{[(_atom_text(a, names), c) for a, c in index.terms]}+{index.constant}"


def _atom_text(atom: Atom, names: dict[int, int]) -> str:
    if isinstance(atom, (Quotient, Remainder)):
        sign = "/" if isinstance(atom, Quotient) else "%"
        return f"({_index_text(atom.index, names)}){sign}{atom.divisor}"
    if isinstance(atom, Lookup):
        return f"lookup{names[atom.expression.number]}<{atom.extent}"
    return f"{atom}<{atom.extent}"

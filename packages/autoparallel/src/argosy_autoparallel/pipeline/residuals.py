"""Which values of a stage's forward pass are kept for its backward pass: those of least bytes.

What the backward pass reads, and what that is made of, is a graph; a value is kept at the cost of its bytes, or made
again from others where an operation allows that. The cheapest choice is a minimum cut between what has to be computed
once and what is read (Chen et al., "Training deep nets with sublinear memory cost", 2016, for the exchange; functorch's
partitioner for the cut), found by blocking flows (Dinic, 1970).

Elementwise operations and other orders of elements may be made again, since they join the kernels that read them. So
may the scores of attention, products in batches that are no smaller than their operands together: where forward and
backward passes both compute them, neither writes them to memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import prod

from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, TensorType, Value
from argosy_pir.effects import is_pure
from argosy_pir.values import OpResult
from argosy_tensorcore.dtype import as_dtype

__all__ = ["choose_residuals", "is_made_anew", "is_repeatable"]

_ENDLESS = 1 << 62
_MOVES = frozenset({"relayout", "place", "to_local", "from_local"})
"""Layout operations that may communicate or copy, which is not done twice."""


def is_made_anew(op: Operation) -> bool:
    """Whether a value is always cheaper made again than kept: constants, repetitions, other orders of elements."""
    if op.name == "builtin.constant":
        return True
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    if primitive is None or primitive.category != "layout" or not is_pure(op) or len(op.results) != 1:
        return False
    if op.kind in _MOVES:
        return False
    return sum(map(_elements, op.operands)) <= _elements(op.result)


def is_repeatable(op: Operation) -> bool:
    """Whether an operation may be made again in a backward pass rather than its result be kept."""
    if is_made_anew(op):
        return True
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    if primitive is None or len(op.results) != 1 or op.regions or not is_pure(op):
        return False
    if primitive.category == "layout":
        return op.kind not in _MOVES
    return primitive.category == "elementwise" or (op.kind == "dot_general" and _is_scores(op))


def _is_scores(op: Operation) -> bool:
    """A product in batches, of whose elements there are no fewer than of its operands together."""
    is_batched = bool(op.attributes.get("lhs_batch"))
    return is_batched and _elements(op.result) >= sum(map(_elements, op.operands))


def choose_residuals(forward: Sequence[Operation], read: Iterable[Value]) -> frozenset[Value]:
    """The values to keep of the operations ``forward``, in order, and of what these read from elsewhere, so that a
    backward pass has those that it ``read``s. What is no result of an operation (an input, a state) is there."""
    own, wanted = set(forward), {value for value in read if isinstance(value, OpResult)}
    network = _Network()
    values = _ancestors(wanted, own)
    order = dict.fromkeys(v for op in forward for v in (*op.operands, *op.results) if v in values)
    node = {value: 2 * i + 2 for i, value in enumerate(order)}  # where it is made; the next one: where it is read
    for value, number in node.items():
        op = value.op
        repeatable = op in own and is_repeatable(op)
        network.add(number, number + 1, _ENDLESS if op in own and is_made_anew(op) else max(_bytes(value), 1))
        sources = [node[x] + 1 for x in op.operands if x in node] if repeatable else [_SOURCE]
        for source in sources:
            network.add(source, number, _ENDLESS)
        if value in wanted:
            network.add(number + 1, _SINK, _ENDLESS)
    reached = network.fill()
    return frozenset(value for value, number in node.items() if number in reached and number + 1 not in reached)


def _ancestors(wanted: Iterable[OpResult], own: set[Operation]) -> set[OpResult]:
    """The values ``wanted`` and those that they can be made of again."""
    found, pending = set[OpResult](), list(wanted)
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            if value.op in own and is_repeatable(value.op):
                pending += [x for x in value.op.operands if isinstance(x, OpResult)]
    return found


_SOURCE, _SINK = 0, 1


class _Network:
    """A network of capacities; edges lie in pairs, one there and one back."""

    def __init__(self) -> None:
        self.edges: dict[int, list[int]] = {_SOURCE: [], _SINK: []}
        self.to: list[int] = []
        self.room: list[int] = []

    def add(self, start: int, end: int, capacity: int) -> None:
        for a, b, room in ((start, end, capacity), (end, start, 0)):
            self.edges.setdefault(a, []).append(len(self.to))
            self.to.append(b)
            self.room.append(room)

    def fill(self) -> dict[int, int]:
        """Find the largest flow; returns the nodes that the source still reaches."""
        while _SINK in (depth := self._depths()):
            at = dict.fromkeys(depth, 0)
            while self._push(depth, at):
                pass
        return depth

    def _depths(self) -> dict[int, int]:
        depth, queue = {_SOURCE: 0}, deque([_SOURCE])
        while queue:
            node = queue.popleft()
            for edge in self.edges[node]:
                end = self.to[edge]
                if self.room[edge] and end not in depth:
                    depth[end] = depth[node] + 1
                    queue.append(end)
        return depth

    def _push(self, depth: dict[int, int], at: dict[int, int]) -> bool:
        """One more path of shortest ones, filled; ``at`` are the edges that nodes have not yet seen to lead nowhere."""
        path: list[int] = []
        node = _SOURCE
        while node != _SINK:
            edges = self.edges[node]
            while at[node] < len(edges):
                edge = edges[at[node]]
                if self.room[edge] and depth.get(self.to[edge]) == depth[node] + 1:
                    break
                at[node] += 1
            if at[node] < len(edges):
                path.append(edges[at[node]])
                node = self.to[path[-1]]
            elif path:
                edge = path.pop()
                node = self.to[edge ^ 1]
                at[node] += 1
            else:
                return False
        least = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= least
            self.room[edge ^ 1] += least
        return True


def _elements(value: Value) -> int:
    type = value.type
    return prod(type.shape) if isinstance(type, TensorType) and type.is_static else _ENDLESS >> 20  # type: ignore[arg-type]


def _bytes(value: Value) -> int:
    type = value.type
    return _elements(value) * as_dtype(type.dtype).itemsize if isinstance(type, TensorType) else 0

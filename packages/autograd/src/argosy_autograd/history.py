"""The tape between sources and values, read back as a list of steps: what :mod:`argosy_autograd.replay` writes down
again as a program.

Gradients that were asked for with ``create_graph`` leave a mark at their place on the tape. The history of what is
computed with them has a step ``Request`` there, which says what was asked for, and not the operators of the backward
pass that answered it: so derivatives of derivatives are seen for what they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

from argosy_autograd.recipes import Recipe
from argosy_autograd.tape import Edge, OperatorNode, Tape
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "History",
    "PastRequest",
    "Place",
    "Request",
    "Step",
    "has_marks",
    "history_of",
    "leaves_of",
    "mark",
    "request_order",
]

_LONGEST = 2000
"""Operators in a history from which on capturing it costs more than it may save."""

Place: TypeAlias = tuple[int, int]
"""A value of a history: (step, number of the result); sources are results of step -1."""

Places: TypeAlias = tuple[Place | None, ...]


class Request:
    """A gradient that was asked for: of ``ends``, weighted with the constants ``seeds`` (None: ones), by ``wanted``.

    ``order`` counts how many requests it is nested in others that it depends on, itself included; ``key`` tells its
    history. ``sequence`` lies between the numbers of the nodes it depends on and of those that answer it.
    """

    __slots__ = ("ends", "key", "order", "seeds", "sequence", "versions", "wanted")

    def __init__(self, ends: Sequence[Edge], wanted: Sequence[Edge], seeds: Sequence[Tensor | None]) -> None:
        self.ends = tuple(ends)
        self.wanted = tuple(wanted)
        self.seeds = tuple(seeds)
        self.versions = self._versions()
        self.sequence = next(Tape.counter)
        self.order = 1
        self.key: Hashable = None

    def _versions(self) -> list[int]:
        return [0 if seed is None else seed.payload.version for seed in self.seeds]

    @property
    def is_current(self) -> bool:
        """Whether the seeds are as they were."""
        return self.versions == self._versions()


_marks: dict[int, tuple[Any, dict[int, tuple[Request, int]]]] = {}
"""By id of a node that lives: a weak reference, which takes the entry out, and what its results by number answer."""


def mark(results: Sequence[Tensor | None], request: Request) -> None:
    """Remember ``results``, new ones, as the answer to ``request``."""
    for number, result in enumerate(results):
        node = None if result is None else result._node
        if node is None or node.sequence <= request.sequence:
            continue
        assert result is not None
        key = id(node)
        if key not in _marks:
            _marks[key] = (ref(node, lambda _, key=key: _marks.pop(key, None)), {})  # type: ignore[misc]
        _marks[key][1][result._slot] = (request, number)


def request_order(node: Any, slot: int) -> int:
    """The order of the request that result ``slot`` of ``node`` answers; 0 where it answers none."""
    marked = _marks.get(id(node))
    return 0 if marked is None or slot not in marked[1] else marked[1][slot][0].order


def has_marks() -> bool:
    """Whether any node lives that answers a request."""
    return bool(_marks)


class Step(NamedTuple):
    """An operator of the history. ``operands``: where those come from that move with the sources, None for others."""

    recipe: Recipe
    operands: Places

    @property
    def keeps(self) -> Sequence[int]:
        """Positions in (operands..., results...) of what is kept."""
        return self.recipe.keeps


class PastRequest(NamedTuple):
    """A gradient request of the history. ``ends`` that do not move are None; ``seeded`` tells which have seeds."""

    ends: Places
    wanted: tuple[Place, ...]
    seeded: tuple[bool, ...]
    keeps: Sequence[int] = ()


class History(NamedTuple):
    """What lies between ``sources`` and ``ends``, in order: ``items`` are the nodes and requests behind ``steps``."""

    steps: tuple[Step | PastRequest, ...]
    ends: tuple[Place, ...]
    sources: tuple[Edge, ...]
    items: list[Any]

    @property
    def requests(self) -> list[Request]:
        """The requests among the steps."""
        return [item for item in self.items if type(item) is Request]


def history_of(ends: Sequence[Edge], sources: Sequence[Edge]) -> History | None:
    """The way from ``sources`` to ``ends``; None where something on it is no plain operator.

    What requests on the way differentiate by are sources, too. Several sources have to be leaves: else one may depend
    on another.
    """
    if any(end in sources for end in ends):
        return None
    found: dict[Edge, None] = dict.fromkeys(sources)
    items = _items(ends, found)
    if items is None or (len(found) > 1 and not all(type(edge[0]) is Tensor for edge in found)):
        return None
    places: dict[Edge, Place] = {edge: (-1, k) for k, edge in enumerate(found)}
    steps: list[Step | PastRequest] = []
    moving: list[Any] = []
    for item, edges in sorted(items.items(), key=lambda pair: pair[0].sequence):
        onwards = tuple([None if edge is None else places.get(edge) for edge in edges])
        if all(place is None for place in onwards):
            continue
        if type(item) is Request:
            if not item.is_current:
                return None
            seeded = tuple(seed is not None for seed in item.seeds)
            steps.append(PastRequest(onwards, tuple(places[edge] for edge in item.wanted), seeded))
            places.update({(item, k): (len(moving), k) for k in range(len(item.wanted))})
        elif not _is_plain(item):
            return None
        else:
            steps.append(Step(item.recipe, onwards))
            places.update({(item, slot): (len(moving), slot) for slot in range(item.results)})
        moving.append(item)
    last = [places.get(_answer(edge)) for edge in ends]
    if None in last or len(steps) > _LONGEST:
        return None
    return History(tuple(steps), tuple(last), tuple(found), moving)  # type: ignore[arg-type]


def leaves_of(ends: Sequence[Edge]) -> list[Edge] | None:
    """The leaves that ``ends`` depend on; None where hooks or retained gradients wait on the way."""
    found: dict[Edge, None] = {}
    items = _items(ends, {}, True)
    for edges in (items or {}).values():
        found.update(dict.fromkeys(edge for edge in edges if edge is not None and type(edge[0]) is Tensor))
    return None if items is None else list(found)


def _is_plain(node: Any) -> bool:
    return type(node) is OperatorNode and not (node.on_tensors or node.recipe.key[0].opaque)


def _answer(edge: Edge) -> Edge:
    """The request that ``edge`` is a result of, with its number; else the edge itself."""
    marked = _marks.get(id(edge[0]))
    return edge if marked is None else marked[1].get(edge[1], edge)


def _items(
    ends: Sequence[Edge], sources: dict[Edge, None], retaining: bool = False
) -> dict[Any, list[Edge | None]] | None:
    """The nodes and requests before ``ends`` as far as ``sources``, which more are added to, with the edges onwards;
    None where hooks wait on the way, or with ``retaining`` others who want to see gradients."""
    found: dict[Any, list[Edge | None]] = {}
    stack = []

    def follow(edge: Edge | None) -> Edge | None:
        if edge is None or type(edge[0]) is Tensor or edge in sources:
            return edge
        onwards = _answer(edge)
        if onwards[0] not in found:
            stack.append((edge[0], onwards[0]))
        return onwards

    for end in ends:
        follow(end)
    while stack:
        node, item = stack.pop()
        if node.hooks or (retaining and node.retained):
            return None
        if item in found:
            continue
        if type(item) is Request:
            sources.update(dict.fromkeys(item.wanted))
            found[item] = [follow(edge) for edge in item.ends]
        else:
            item.check_alive()
            found[item] = [follow(edge) for edge in item.edges]
    return found

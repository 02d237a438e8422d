"""The cheapest way from one layout to another on the same mesh (Dijkstra, 1959, over tuples of placements).

Mesh dimensions that split the same tensor axis nest, the first one outermost, so an outer one can change only while no
inner one splits the axis it takes or leaves.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from itertools import count

from argosy_autoparallel.local_slice import estimate_elements
from argosy_autoparallel.placement import Placement, Replicate, Shard
from argosy_autoparallel.resharding.costs import has_step, step_cost
from argosy_autoparallel.tensor_layout import Layout

__all__ = ["Step", "communicates", "is_allowed", "layout_path", "path_cost"]

Step = tuple[int, Placement]
"""Mesh dimension, and the placement that it gets."""

_FIXED = 1e-3  # cost of a step that moves nothing: of equally cheap ways the one of fewer steps
_START = 4096.0  # bytes sent in the time a collective takes to start: small tensors take few steps, large ones few


@lru_cache(maxsize=65536)
def layout_path(source: Layout, target: Layout, shape: tuple[int, ...], itemsize: int) -> tuple[Step, ...]:
    """The steps from ``source`` to ``target`` for a tensor of global ``shape``, in order."""
    return _search(source, target, shape, itemsize)[1]


def path_cost(source: Layout, target: Layout, shape: tuple[int, ...], itemsize: int) -> float:
    """Bytes that a rank sends on the way, and for each collective those that it could send while it starts."""
    return _search(source, target, shape, itemsize)[0]


@lru_cache(maxsize=65536)
def _search(source: Layout, target: Layout, shape: tuple[int, ...], itemsize: int) -> tuple[float, tuple[Step, ...]]:
    if not target.is_plain:
        target.local_slice(shape, target.mesh.process_ids[0])  # raises for parts that there are not
    size = estimate_elements(shape) * itemsize
    options = _options(source, target, len(shape))
    order = count()
    heap: list[tuple[float, int, Layout, tuple[Step, ...]]] = [(0.0, next(order), source, ())]
    done: set[Layout] = set()
    while heap:
        cost, _, at, steps = heappop(heap)
        if at == target:
            return cost, steps
        if at in done:
            continue
        done.add(at)
        for dim, choices in enumerate(options):
            here = size / at.parts(but=dim)
            for new in choices:
                if new != at.placements[dim] and is_allowed(at, dim, new) and _fits(at, dim, new, shape):
                    price = step_cost(at.placements[dim], new, here, at.mesh.shape[dim])
                    price += _START if price else _FIXED
                    heappush(heap, (cost + price, next(order), at.with_placement(dim, new), (*steps, (dim, new))))
    raise ValueError(f"there is no way from {source} to {target}")


def _options(source: Layout, target: Layout, ndim: int) -> list[list[Placement]]:
    """What each mesh dimension may be on the way; splitting an axis that neither end splits may save a gather."""
    free: list[Placement] = [Replicate(), *map(Shard, range(ndim))]
    return [list(dict.fromkeys((*free, s, t))) for s, t in zip(source.placements, target.placements, strict=True)]


def is_allowed(at: Layout, dim: int, new: Placement) -> bool:
    """Whether mesh dimension ``dim`` of ``at`` can get the placement ``new`` in one step."""
    old = at.placements[dim]
    if not has_step(old, new) or _mixes(at, dim, new):
        return False
    touched = {p.dim for p in (old, new) if isinstance(p, Shard)}
    return not any(isinstance(p, Shard) and p.dim in touched for p in at.placements[dim + 1 :])


def _fits(at: Layout, dim: int, new: Placement, shape: tuple[int, ...]) -> bool:
    """Whether there are the blocks, or parts of the sizes, that a step asks for."""
    return not isinstance(new, Shard) or new.is_plain or at.with_placement(dim, new).fits(shape)


def _mixes(at: Layout, dim: int, new: Placement) -> bool:
    """Whether reductions of different kinds would meet: they have no order."""
    others = (p for d, p in enumerate(at.placements) if d != dim and p.is_partial())
    return new.is_partial() and any(p != new for p in others)


def communicates(source: Layout, target: Layout) -> bool:
    """Whether ranks need of each other what they have in ``source``."""
    pairs = zip(source.placements, target.placements, strict=True)
    return source.mesh != target.mesh or any(
        a != b and not a.is_replicated() and not (a.is_shard() and b.is_partial()) for a, b in pairs
    )

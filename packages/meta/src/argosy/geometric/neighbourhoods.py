"""Neighbourhoods in graphs: sampled from compressed columns, and numbered anew.

What comes out depends on values, so these functions work on the host and hold no gradients.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["reindex_graph", "reindex_heter_graph", "sample_neighbors", "weighted_sample_neighbors"]

Chosen = Callable[[int, int], Any]


@validate_call
def reindex_graph(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Edges and nodes of a sampled neighbourhood with numbers from 0: (sources, destinations, nodes).

    x: the nodes whose neighbours were sampled, which keep their order as the first numbers; neighbors: of all of them,
    one after another; count: how many each has. nodes: the old number of each new one. The buffers are ignored.
    """
    known, beside, counts = x.numpy(), neighbors.numpy(), count.numpy()
    if counts.sum() != beside.size or counts.size % max(known.size, 1):
        stated = f"{counts.sum()} neighbours of {known.size} nodes"
        raise ValueError(f"reindex_graph: count says {stated}; neighbors should hold as many, got {beside.size}")
    nodes, first = np.unique(np.concatenate([known, beside]), return_index=True)
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    sources = number[np.searchsorted(nodes, beside)]
    ends = np.tile(np.arange(known.size), counts.size // max(known.size, 1))
    destinations = np.repeat(ends, counts)
    return tuple(Tensor(a.astype(known.dtype)) for a in (sources, destinations, nodes[order]))  # type: ignore[return-value]


@validate_call
def reindex_heter_graph(
    x: Tensor,
    neighbors: Sequence[Tensor],
    count: Sequence[Tensor],
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`reindex_graph` of several kinds of edges between the same nodes: their edges one kind after another."""
    join = get_operator("concat")
    return reindex_graph(x, join(list(neighbors)), join(list(count)))


@validate_call
def sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    perm_buffer: Tensor | None = None,
    name: str | None = None,
) -> Any:
    """At most ``sample_size`` neighbours of each of ``input_nodes`` (-1: all), none of them twice.

    Returns (neighbours, counts), and with ``return_eids`` the numbers ``eids`` of their edges.

    row, colptr: the graph by columns: those of node i are ``row[colptr[i]:colptr[i + 1]]``.
    """
    draw = _uniform_source()

    def choose(start: int, stop: int) -> Any:
        return np.argsort(draw(stop - start), kind="stable")[:sample_size]

    return _sample("sample_neighbors", row, colptr, input_nodes, sample_size, eids, return_eids, choose)


@validate_call
def weighted_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    edge_weight: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    name: str | None = None,
) -> Any:
    """:func:`sample_neighbors` with chances in proportion to ``edge_weight`` (Efraimidis and Spirakis, 2006).

    Returns what that does.
    """
    draw, weights = _uniform_source(), edge_weight.numpy()

    def choose(start: int, stop: int) -> Any:
        with np.errstate(divide="ignore"):
            waits = -np.log(np.maximum(draw(stop - start), 1e-45)) / weights[start:stop]
        return np.argsort(waits, kind="stable")[:sample_size]

    return _sample("weighted_sample_neighbors", row, colptr, input_nodes, sample_size, eids, return_eids, choose)


def _uniform_source() -> Callable[[int], Any]:
    """Uniform numbers that follow from ``argosy.seed``."""
    (seed,) = get_operator("randint")(0, 2**31 - 1, [1], "int64").numpy()
    return np.random.Generator(np.random.Philox(int(seed))).random


def _sample(
    owner: str, row: Any, colptr: Any, nodes: Any, size: int, eids: Any, return_eids: bool, chosen: Chosen
) -> Any:
    if return_eids and eids is None:
        raise ValueError(f"{owner}: return_eids needs eids")
    starts, wanted = colptr.numpy().ravel(), nodes.numpy().ravel()
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < starts.size - 1:
        given = f"{wanted.min()} to {wanted.max()}"
        raise ValueError(f"{owner}: input_nodes should be from 0 to {starts.size - 2}, got {given}")
    kept = []
    for start, stop in zip(starts[wanted], starts[wanted + 1], strict=True):
        every = np.arange(start, stop)
        kept.append(every if size < 0 or stop - start <= size else every[chosen(int(start), int(stop))])
    edges = np.concatenate(kept) if kept else np.empty(0, np.int64)
    counts = np.array([len(one) for one in kept], np.int32)
    found = [Tensor(row.numpy().ravel()[edges]), Tensor(counts)]
    return (*found, Tensor(eids.numpy().ravel()[edges])) if return_eids else tuple(found)

"""Graph operations by their older names: those of :mod:`argosy.geometric`."""

from __future__ import annotations

from typing import Any

from argosy.geometric.messages import send_u_recv
from argosy.geometric.neighbourhoods import reindex_graph, sample_neighbors
from argosy_tensorcore.tensor import Tensor

__all__ = ["graph_reindex", "graph_sample_neighbors", "graph_send_recv"]


def graph_send_recv(
    x: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    pool_type: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """:func:`argosy.geometric.send_u_recv`."""
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


def graph_reindex(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    flag_buffer_hashtable: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`argosy.geometric.reindex_graph`. The buffers are ignored."""
    return reindex_graph(x, neighbors, count)


def graph_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    eids: Tensor | None = None,
    perm_buffer: Tensor | None = None,
    sample_size: int = -1,
    return_eids: bool = False,
    flag_perm_buffer: bool = False,
    name: str | None = None,
) -> Any:
    """:func:`argosy.geometric.sample_neighbors`. The buffer is ignored. Returns what that does."""
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)

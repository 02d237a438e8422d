"""Learning on graphs: messages along edges, reductions over segments, neighbourhoods."""

from argosy.faces import face

_MESSAGES = (
    "segment_max", "segment_mean", "segment_min", "segment_sum", "send_u_recv", "send_ue_recv", "send_uv",
)  # fmt: skip
_TABLE = {
    **{name: f"argosy.geometric.messages:{name}" for name in _MESSAGES},
    **{
        name: f"argosy.geometric.neighbourhoods:{name}"
        for name in ("reindex_graph", "reindex_heter_graph", "sample_neighbors", "weighted_sample_neighbors")
    },
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

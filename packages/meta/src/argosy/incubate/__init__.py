"""What Paddle keeps under ``incubate``: the face of ``argosy.incubate``."""

from argosy.faces import face

_SEGMENTS = ("segment_max", "segment_mean", "segment_min", "segment_sum")
_GRAPHS = ("graph_reindex", "graph_sample_neighbors", "graph_send_recv")
_TABLE = {
    "autograd": "argosy.incubate.autograd",
    "asp": "argosy.incubate.asp",
    "distributed": "argosy.incubate.distributed",
    "autotune": "argosy.incubate.autotune",
    "nn": "argosy.incubate.nn",
    "optimizer": "argosy.incubate.optimizer",
    **{name: f"argosy.incubate.optimizer:{name}" for name in ("LookAhead", "ModelAverage")},
    **{name: f"argosy.geometric.messages:{name}" for name in _SEGMENTS},
    **{name: f"argosy.incubate.graphs:{name}" for name in _GRAPHS},
    **{
        name: f"argosy.incubate.functions:{name}"
        for name in ("identity_loss", "softmax_mask_fuse", "softmax_mask_fuse_upper_triangle")
    },
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

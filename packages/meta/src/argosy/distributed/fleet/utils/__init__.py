"""``distributed.fleet.utils``: recomputation, and means of gradients by hand."""

from argosy.faces import face

_TABLE = {
    "recompute": "argosy.distributed.fleet.recompute:recompute",
    **{
        name: f"argosy.distributed.fleet.utils.{name}"
        for name in ("hybrid_parallel_util", "log_util", "sequence_parallel_utils")
    },
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""``distributed.fleet.utils``: recomputation, and means of gradients by hand."""

from argosy.faces import face

_TABLE = {
    "recompute": "argosy.distributed.fleet.recomputation:recompute",
    "hybrid_parallel_util": "argosy.distributed.fleet.utils.hybrid_parallel_util",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

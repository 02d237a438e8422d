"""Training helpers that Paddle keeps under ``distributed.fleet``; ranks and meshes are in ``argosy.distributed``."""

from argosy.faces import face

_TABLE = {
    "utils": "argosy.distributed.fleet.utils",
    "recompute": "argosy.distributed.fleet.recomputation:recompute",
    "recompute_sequential": "argosy.distributed.fleet.recomputation:recompute_sequential",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

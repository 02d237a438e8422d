"""Recomputation, under its public address in Paddle."""

from argosy.faces import face

_TABLE = {
    name: f"argosy.distributed.fleet.recompute.recompute:{name}"
    for name in ("recompute_hybrid", "recompute_sequential")
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

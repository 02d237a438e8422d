"""``distributed.fleet.utils``: the face of recomputation."""

from argosy.faces import face

_TABLE = {"recompute": "argosy.distributed.fleet.recomputation:recompute"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

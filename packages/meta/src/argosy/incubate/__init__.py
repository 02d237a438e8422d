"""What Paddle keeps under ``incubate``: the face of ``argosy.incubate``."""

from argosy.faces import face

_TABLE = {"autograd": "argosy.incubate.autograd", "optimizer": "argosy.incubate.optimizer"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

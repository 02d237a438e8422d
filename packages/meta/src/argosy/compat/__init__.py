"""Functions with the signatures of another framework, as Paddle keeps them under ``paddle.compat``."""

from argosy.faces import face

_TABLE = {"nn": "argosy.compat.nn", "seed": "argosy.random:seed"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

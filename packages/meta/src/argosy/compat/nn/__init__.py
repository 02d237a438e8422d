"""Layers' functions with the signatures of another framework."""

from argosy.faces import face

_TABLE = {"functional": "argosy.compat.nn.functional"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

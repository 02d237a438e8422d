"""Optimizers under their older address."""

from argosy.faces import face

_TABLE = {"LBFGS": "argosy.optimizer.lbfgs:LBFGS", "functional": "argosy.incubate.optimizer.functional"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Optimizers around another one, and those that have moved, under their older address."""

from argosy.faces import face

_TABLE = {
    "LBFGS": "argosy.optimizer.lbfgs:LBFGS",
    "LookAhead": "argosy.incubate.optimizer.lookahead:LookAhead",
    "ModelAverage": "argosy.incubate.optimizer.modelaverage:ModelAverage",
    "functional": "argosy.incubate.optimizer.functional",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

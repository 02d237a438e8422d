"""Optimizers and learning-rate schedules: the face of ``argosy.optimizer``."""

from argosy.faces import face

_TABLE = {
    "Optimizer": "argosy.optimizer.optimizer:Optimizer",
    "SGD": "argosy.optimizer.momentum:SGD",
    "Momentum": "argosy.optimizer.momentum:Momentum",
    "Adam": "argosy.optimizer.adam:Adam",
    "AdamW": "argosy.optimizer.adam:AdamW",
    "lr": "argosy.optimizer.lr",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

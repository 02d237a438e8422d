"""Optimizers and learning-rate schedules: the face of ``argosy.optimizer``."""

from argosy.faces import face

_TABLE = {
    "Optimizer": "argosy.optimizer.optimizer:Optimizer",
    "SGD": "argosy.optimizer.momentum:SGD",
    "Momentum": "argosy.optimizer.momentum:Momentum",
    "Adam": "argosy.optimizer.adam:Adam",
    "AdamW": "argosy.optimizer.adam:AdamW",
    "Adadelta": "argosy.optimizer.adaptive:Adadelta",
    "Adagrad": "argosy.optimizer.adaptive:Adagrad",
    "RMSProp": "argosy.optimizer.adaptive:RMSProp",
    "Adamax": "argosy.optimizer.moments:Adamax",
    "Lamb": "argosy.optimizer.moments:Lamb",
    "NAdam": "argosy.optimizer.moments:NAdam",
    "RAdam": "argosy.optimizer.moments:RAdam",
    "ASGD": "argosy.optimizer.averaging:ASGD",
    "Rprop": "argosy.optimizer.averaging:Rprop",
    "LBFGS": "argosy.optimizer.lbfgs:LBFGS",
    "lr": "argosy.optimizer.lr",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Operators that libraries call past Paddle's functions, with all their attributes in the order of Paddle's operator
definitions.

Only those that have no function of that order and meaning are listed here; others are missing on purpose: what they
take differs from what the function of the same name takes.
"""

from argosy.faces import face

__all__: list[str] = []

_TABLE = {
    "batch_norm": "argosy.nn.statistics:batch_norm_with_statistics",
    "multiclass_nms3": "argosy.vision.ops.suppression:multiclass_nms3",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

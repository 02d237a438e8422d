"""The functions behind layers: operators of the operator library by their names (``linear``, ``softmax``, ...)."""

from argosy.faces import face, operator_function

_TABLE = {
    "batch_norm": "argosy.nn.statistics:batch_norm",
    "dropout": "argosy.nn.regularization:dropout",
    "one_hot": "argosy.selection:one_hot",
    "sequence_mask": "argosy.selection:sequence_mask",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals(), operator_function)

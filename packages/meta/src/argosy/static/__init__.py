"""The part of ``paddle.static`` that makes sense without a global static mode."""

from argosy.faces import face

_TABLE = {
    "InputSpec": "argosy.jit.input_spec:InputSpec",
    "create_parameter": "argosy.creation:create_parameter",
    "nn": "argosy.static.nn",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Capture and compilation of Python functions: the face of ``argosy.jit``."""

from argosy.faces import face

_TABLE = {
    "InputSpec": "argosy.jit.input_spec:InputSpec",
    "StaticFunction": "argosy.jit.static_function:StaticFunction",
    "count_compiles": "argosy.jit.counting:count_compiles",
    "enable_to_static": "argosy.jit.decorate:enable_to_static",
    "ignore_module": "argosy.jit.decorate:ignore_module",
    "not_to_static": "argosy.jit.decorate:not_to_static",
    "TranslatedLayer": "argosy.jit.translated:TranslatedLayer",
    "load": "argosy.jit.translated:load",
    "save": "argosy.jit.export:save",
    "to_static": "argosy.jit.decorate:to_static",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

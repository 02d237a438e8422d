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
    "clear_report": "argosy.jit.reporting:clear_report",
    "report": "argosy.jit.reporting:report",
    "set_code_level": "argosy.jit.reporting:set_code_level",
    "set_verbosity": "argosy.jit.reporting:set_verbosity",
    "save": "argosy.jit.export:save",
    "to_static": "argosy.jit.decorate:to_static",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

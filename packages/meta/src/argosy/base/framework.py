"""Parameters, variables, programs and modes where older scripts look for them."""

from argosy.faces import face

_STATIC = ("Program", "Variable", "default_main_program", "default_startup_program", "program_guard")
_MODES = ("in_dynamic_or_pir_mode", "use_pir_api")
_TABLE = {
    **{name: f"argosy.static:{name}" for name in _STATIC},
    **{name: f"argosy.modes:{name}" for name in _MODES},
    **{name: "argosy.modes:in_dynamic_mode" for name in ("in_dygraph_mode", "in_dynamic_mode")},
    **{name: "argosy.nn.parameter:Parameter" for name in ("EagerParamBase", "Parameter")},
    "convert_np_dtype_to_dtype_": "argosy_tensorcore.dtype:as_dtype",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

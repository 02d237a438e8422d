"""Parameters, variables, programs and modes where older scripts look for them."""

from argosy.faces import face

_STATIC = ("Program", "Variable", "default_main_program", "default_startup_program", "program_guard")
_FLAGS = ("get_flags", "set_flags")
_MODES = ("in_dynamic_or_pir_mode", "in_pir_mode", "use_pir_api")
_TABLE = {
    **{name: f"argosy.static:{name}" for name in _STATIC},
    **{name: f"argosy.modes:{name}" for name in _MODES},
    **{name: f"argosy.framework.flags:{name}" for name in _FLAGS},
    **{name: "argosy.modes:in_dynamic_mode" for name in ("in_dygraph_mode", "in_dynamic_mode")},
    **{name: "argosy.nn.parameter:Parameter" for name in ("EagerParamBase", "Parameter")},
    "_current_expected_place": "argosy.device.places:expected_place",
    "_current_expected_place_": "argosy.device.places:expected_place",
    "convert_np_dtype_to_dtype_": "argosy_tensorcore.dtype:as_dtype",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

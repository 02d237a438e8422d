"""Parameters, variables, programs and modes where older scripts look for them."""

from argosy.faces import face

_STATIC = (
    "Program", "Variable", "cpu_places", "default_main_program", "default_startup_program", "device_guard",
    "name_scope", "program_guard",
)  # fmt: skip
_RESTRICTIONS = ("dygraph_not_support", "dygraph_only", "fake_interface_only", "non_static_only", "static_only")
_DEVICES = (
    "is_compiled_with_cinn", "is_compiled_with_cuda", "is_compiled_with_distribute", "is_compiled_with_rocm",
    "is_compiled_with_xpu",
)  # fmt: skip
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
    **{name: f"argosy.base.restrictions:{name}" for name in _RESTRICTIONS},
    **{name: f"argosy.device:{name}" for name in _DEVICES},
    "Block": "argosy.static.program:Block",
    "core": "argosy.base.core",
    "unique_name": "argosy.utils.unique_name",
    "disable_signal_handler": "argosy.framework:disable_signal_handler",
    "_create_tensor": "argosy.base.tensors:create_tensor",
    "_dygraph_tracer": "argosy.base.restrictions:tracer",
    "_stride_in_no_check_dy2st_diff": "argosy.base.restrictions:no_check_of_views",
    "_get_paddle_place": "argosy.device.places:place_named",
    "_set_expected_place": "argosy.device:set_device",
    "convert_np_dtype_to_dtype_": "argosy_tensorcore.dtype:as_dtype",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

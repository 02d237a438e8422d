"""What older scripts take from Paddle's inner package: the face of ``argosy.base``."""

from argosy.faces import face

_STATIC = (
    "Executor", "Program", "default_main_program", "default_startup_program", "global_scope", "program_guard",
    "scope_guard",
)  # fmt: skip
_DEVICES = ("is_compiled_with_cinn", "is_compiled_with_cuda", "is_compiled_with_rocm", "is_compiled_with_xpu")
_TABLE: dict[str, str] = {
    **{name: f"argosy.static:{name}" for name in _STATIC},
    **{name: f"argosy.device:{name}" for name in (*_DEVICES, "CPUPlace")},
    **{name: f"argosy.framework:{name}" for name in ("CUDAPinnedPlace", "CUDAPlace", "get_flags", "set_flags")},
    **{
        name: f"argosy.base.framework:{name}"
        for name in ("Variable", "device_guard", "in_dygraph_mode", "in_pir_mode", "name_scope", "unique_name")
    },
    "data_feeder": "argosy.base.data_feeder",
    "ParamAttr": "argosy.attributes:ParamAttr",
    **{name: f"argosy.base.{name}" for name in ("core", "dygraph", "framework", "layer_helper", "libpaddle")},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

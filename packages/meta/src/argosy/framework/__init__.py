"""Names of the framework at large: flags, modes, places of other builds, readers. The face of ``argosy.framework``."""

from argosy.faces import face

_OWN = {
    "flags": ("get_flags", "set_flags"),
    "other_devices": (
        "CUDAPinnedPlace", "CUDAPlace", "XPUPinnedPlace", "disable_signal_handler", "fp8_fp8_half_gemm_fused",
        "get_cuda_rng_state", "set_cuda_rng_state",
    ),
    "reading": ("MmapStorage", "batch", "check_shape"),
}  # fmt: skip
_ELSEWHERE = {
    "argosy.modes": ("disable_static", "enable_static", "in_dynamic_mode", "in_dynamic_or_pir_mode", "use_pir_api"),
    "argosy.serialization": ("load", "save"),
    "argosy.dtypes": ("get_default_dtype", "set_default_dtype"),
    "argosy.autograd": ("grad", "no_grad"),
    "argosy.device": ("CPUPlace",),
    "argosy.random": ("seed",),
    "argosy.attributes": ("ParamAttr",),
    "argosy.static": ("Program",),
    "argosy.nn.parameter": ("Parameter",),
}
_TABLE: dict[str, str] = {
    **{name: f"argosy.framework.{module}:{name}" for module, names in _OWN.items() for name in names},
    **{name: f"{module}:{name}" for module, names in _ELSEWHERE.items() for name in names},
    "dtype": "argosy_tensorcore.dtype:DType",
    "random": "argosy.random",
    "_current_expected_place": "argosy.device.places:expected_place",
    "_current_expected_place_": "argosy.device.places:expected_place",
    **{name: f"argosy.base.framework:{name}" for name in ("_dygraph_tracer", "_get_paddle_place", "dygraph_only")},
    **{
        name: f"argosy.base.framework:{name}" for name in ("Block", "convert_np_dtype_to_dtype_", "dygraph_not_support")
    },
    "_no_check_dy2st_diff": "argosy.base.restrictions:no_check_of_views",
    "IrGraph": "argosy.framework.graphs:IrGraph",
    "LayerHelper": "argosy.base.layer_helper:LayerHelper",
    "async_save": "argosy.background:async_save",
    "base": "argosy.base",
    "in_pir_mode": "argosy.modes:in_pir_mode",
    "recall_error": "argosy.framework.recall_error",
    "core": "argosy.framework.core",
    "io": "argosy.framework.io",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

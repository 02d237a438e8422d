"""Static programs: built once by running Python on variables, then run by an ``Executor``."""

from argosy.faces import face

_PROGRAM = "argosy.static.program:"
_EXECUTOR = "argosy.static.executor:"

_TABLE = {
    "InputSpec": "argosy.jit.input_spec:InputSpec",
    "Variable": "argosy.runtime:Tensor",
    "create_parameter": "argosy.creation:create_parameter",
    **{name: f"argosy.static.{name}" for name in ("amp", "nn", "quantization")},
    **{
        name: _PROGRAM + name
        for name in (
            "Program", "data", "default_main_program", "default_startup_program", "device_guard", "name_scope",
            "program_guard",
        )
    },
    **{name: _EXECUTOR + name for name in ("BuildStrategy", "CompiledProgram", "Executor")},
    **{
        name: "argosy.static.files:" + name
        for name in (
            "deserialize_persistables", "deserialize_program", "load", "load_from_file", "load_inference_model",
            "load_program_state", "normalize_program", "save", "save_inference_model", "save_to_file",
            "serialize_persistables", "serialize_program", "set_program_state",
        )
    },
    **{
        name: f"argosy.static.statistics:{name}"
        for name in ("ExponentialMovingAverage", "accuracy", "auc", "create_global_var")
    },
    **{name: f"argosy.static.python_functions:{name}" for name in ("Print", "WeightNormParamAttr", "py_func")},
    **{name: f"argosy.static.scope:{name}" for name in ("Scope", "global_scope", "scope_guard")},
    **{name: f"argosy.static.places:{name}" for name in ("cpu_places", "cuda_places", "xpu_places")},
    **{
        name: f"argosy.static.absent:{name}"
        for name in ("IpuCompiledProgram", "IpuStrategy", "ctr_metric_bundle", "ipu_shard_guard", "set_ipu_shard")
    },
    **{name: f"argosy.static.differentiation:{name}" for name in ("append_backward", "gradients")},
}  # fmt: skip

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""A complete deep-learning framework in Python with the system architecture of PaddlePaddle 3.

``import argosy as paddle`` and go on as usual. The names of this module live in the packages it is made of and are
fetched when first used, so that importing it costs next to nothing.
"""

import argosy as paddle  # noqa: F401  (scripts write paddle.paddle)
from argosy.__about__ import __version__ as __version__
from argosy.faces import face, fetch, operator_function

_DTYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float8_e4m3fn", "float8_e5m2",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_DTYPE_ALIASES = {
    "bool": "bool_", "half": "float16", "float": "float32", "double": "float64",
    "short": "int16", "int": "int32", "long": "int64", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
_SUBMODULES = (
    "nn", "linalg", "fft", "special", "functional", "optimizer", "io", "jit", "models", "autograd", "static", "device",
    "distributed", "amp", "metric", "callbacks", "profiler", "regularizer", "incubate", "science", "library", "compat",
    "framework", "tensor", "vision", "base", "distribution", "signal", "geometric", "sparse",
    "utils", "version", "hub", "text", "audio", "common_ops_import", "hapi", "pir", "reader", "inference",
    "quantization", "onnx", "_C_ops", "_legacy_C_ops", "random", "cost_model", "cuda", "sysconfig",
)  # fmt: skip

_FRAMEWORK = (
    "set_flags", "get_flags", "get_cuda_rng_state", "set_cuda_rng_state", "disable_signal_handler", "batch",
    "CUDAPlace", "CUDAPinnedPlace", "XPUPinnedPlace", "check_shape", "MmapStorage",
)  # fmt: skip
_LEGACY = (
    "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor",
    "IntTensor", "LongTensor", "BoolTensor", "asarray",
)  # fmt: skip

_TABLE: dict[str, str] = {
    **{name: f"argosy.{name}" for name in _SUBMODULES},
    **{name: f"argosy_tensorcore.dtype:{name}" for name in _DTYPES},
    **{name: f"argosy_tensorcore.dtype:{target}" for name, target in _DTYPE_ALIASES.items()},
    **{name: f"argosy.dtypes:{name}" for name in ("get_default_dtype", "set_default_dtype")},
    **{name: f"argosy.random:{name}" for name in ("seed", "get_rng_state", "set_rng_state")},
    **{
        name: f"argosy.creation:{name}"
        for name in ("to_tensor", "as_tensor", "create_parameter", "is_tensor", "from_numpy", "assign")
    },
    **{name: f"argosy.modes:{name}" for name in ("in_dynamic_mode", "enable_static", "disable_static")},
    **{
        name: f"argosy.device:{name}"
        for name in (
            "get_device",
            "set_device",
            "is_compiled_with_cinn",
            "is_compiled_with_cuda",
            "is_compiled_with_custom_device",
            "is_compiled_with_distribute",
            "is_compiled_with_ipu",
            "is_compiled_with_rocm",
            "is_compiled_with_xpu",
        )
    },
    **{name: f"argosy.serialization:{name}" for name in ("save", "load")},
    **{name: f"argosy.background:{name}" for name in ("async_save", "clear_async_save_task_queue")},
    **{
        name: f"argosy.windows:{name}"
        for name in ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
    },
    **{name: f"argosy.device.description:{name}" for name in ("get_default_device", "set_default_device")},
    **{
        name: f"argosy.autograd:{name}"
        for name in ("grad", "no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled")
    },
    "explain": "argosy.jit.explanation:explain",
    "DataParallel": "argosy.distributed.data_parallel:DataParallel",
    **{name: f"argosy.framework:{name}" for name in _FRAMEWORK},
    **{name: f"argosy.legacy:{name}" for name in _LEGACY},
    "manual_seed": "argosy.random:seed",
    "Generator": "argosy_tensorcore.rng:Generator",
    "Model": "argosy.hapi.model:Model",
    "summary": "argosy.hapi.summary:summary",
    "flops": "argosy.hapi.operations:flops",
    "Tensor": "argosy.runtime:Tensor",
    "ParamAttr": "argosy.attributes:ParamAttr",
    "LazyGuard": "argosy.nn.lazy:LazyGuard",
    "autocast": "argosy.amp.support:autocast",
    "softmax": "argosy.compat.nn.functional:softmax",
    **{name: f"argosy.compat.absent:{name}" for name in ("disable_compat", "enable_compat")},
    **{name: f"argosy.dtypes:{name}" for name in ("pstring", "raw")},
    **{
        name: f"argosy.amp.support:{name}"
        for name in (
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "is_autocast_enabled",
        )
    },
    "core": "argosy.framework.core",
    "device_guard": "argosy.static:device_guard",
    "dtype": "argosy_tensorcore.dtype:DType",
    "finfo": "argosy_tensorcore.dtype:finfo",
    "iinfo": "argosy_tensorcore.dtype:iinfo",
    "Size": "argosy_tensorcore.shape:Size",
    "CPUPlace": "argosy.device:CPUPlace",
    "set_printoptions": "argosy_tensorcore.printing:set_printoptions",
    **{name: f"argosy.utils.dlpack:{name}" for name in ("from_dlpack", "to_dlpack")},
}

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None


def _operators() -> list[str]:
    listed: list[str] = fetch("argosy_phi_ops.listing:functions", "dir(argosy)")()
    return listed


__getattr__, __dir__ = face(__name__, _TABLE, globals(), operator_function, _operators)

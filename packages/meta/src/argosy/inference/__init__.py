"""Serving as users of Paddle Inference write it: ``Config``, ``create_predictor``, handles of inputs and outputs.

A thin face of ``argosy_infer``; the models are those of ``jit.save`` here, or of Paddle 3.
"""

from argosy.faces import face

_TABLE = {
    "Config": "argosy.inference.config:Config",
    **{name: f"argosy.inference.kinds:{name}" for name in ("DataType", "PlaceType", "PrecisionType")},
    **{
        name: f"argosy.inference.predictor:{name}"
        for name in ("Predictor", "PredictorPool", "Tensor", "create_predictor")
    },
    **{
        name: f"argosy.inference.queries:{name}"
        for name in (
            "XpuConfig", "convert_to_mixed_precision", "get_num_bytes_of_data_type", "get_trt_compile_version",
            "get_trt_runtime_version", "get_version",
        )
    },
}  # fmt: skip

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Linear maps with quantised weights, for inference: ``weight_quantize``, ``weight_only_linear`` and what belongs to
them; and the layers that ``argosy.quantization`` puts into models.
"""

from argosy.faces import face, operators_named

_TABLE = {
    "QuanterStub": "argosy.nn.quant.stub:QuanterStub",
    "Stub": "argosy.nn.quant.stub:Stub",
    **{name: f"argosy.nn.quant.{name}" for name in ("format", "qat", "quantized_linear", "stub")},
}
__all__ = ["Stub", "llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]
__getattr__, __dir__ = face(__name__, _TABLE, globals(), *operators_named(__all__[1:]))

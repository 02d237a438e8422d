"""Linear maps with quantised weights, for inference: ``weight_quantize``, ``weight_only_linear`` and what belongs to
them.
"""

from argosy.faces import face, operators_named

__all__ = ["llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]


__getattr__, __dir__ = face(__name__, {}, globals(), *operators_named(__all__))

"""Linear maps with quantised weights, for inference: ``weight_quantize``, ``weight_only_linear`` and what belongs to
them; and the layers that ``argosy.quantization`` puts into models.
"""

from argosy.api import lazy_names

__all__ = ["Stub", "llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]
__getattr__, __dir__ = lazy_names(__name__, globals())

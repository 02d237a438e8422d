"""Linear maps with quantised weights, for inference: ``weight_quantize``, ``weight_only_linear`` and what belongs to
them.
"""

from argosy.faces import face, operator_function

__all__ = ["llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]


def _find(name: str) -> object | None:
    return operator_function(name) if name in __all__ else None


__getattr__, __dir__ = face(__name__, {}, globals(), _find)

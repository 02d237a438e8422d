"""Where Paddle defines linear maps with quantised weights."""

from argosy.faces import face, operators_named

_OPERATORS = ("llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize")

__getattr__, __dir__ = face(__name__, {}, globals(), *operators_named(_OPERATORS))


def _get_arch_info() -> int:
    """The generation of the CUDA device: 0, for there is none."""
    return 0

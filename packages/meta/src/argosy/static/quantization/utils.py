"""Helpers of Paddle's passes on older programs: names that libraries import beside what they use."""

from argosy.absent import absent_names

_NAMES = ("dequant_tensor", "load_variable_data", "quant_tensor", "set_variable_data", "stable_sigmoid")
_INSTEAD = "programs are PIR; use quantization.PTQ or quantization.QAT with a QuantConfig"

__getattr__ = absent_names(__name__, "argosy.static.quantization.utils", dict.fromkeys(_NAMES, _INSTEAD))

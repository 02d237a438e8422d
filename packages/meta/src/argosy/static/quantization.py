"""Passes that quantise Paddle's older programs: names that libraries import beside what they use."""

from argosy.absent import absent_names

_NAMES = (
    "AddQuantDequantForInferencePass", "AddQuantDequantPass", "AddQuantDequantPassV2", "ConvertToInt8Pass",
    "OutScaleForInferencePass", "OutScaleForTrainingPass", "PostTrainingQuantization",
    "PostTrainingQuantizationProgram", "QuantInt8MkldnnPass", "QuantWeightPass", "QuantizationFreezePass",
    "QuantizationTransformPass", "QuantizationTransformPassV2", "ReplaceFakeQuantDequantPass", "WeightQuantization",
    "quant_config", "utils",
)  # fmt: skip
_INSTEAD = "programs are PIR; use quantization.PTQ or quantization.QAT with a QuantConfig"

__getattr__ = absent_names(__name__, "argosy.static.quantization", dict.fromkeys(_NAMES, _INSTEAD))

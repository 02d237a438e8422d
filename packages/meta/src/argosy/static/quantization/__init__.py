"""Passes that quantise Paddle's older programs: names that libraries import beside what they use."""

from argosy.api import lazy_names

_NAMES = (
    "AddQuantDequantForInferencePass", "AddQuantDequantPass", "AddQuantDequantPassV2", "ConvertToInt8Pass",
    "OutScaleForInferencePass", "OutScaleForTrainingPass", "PostTrainingQuantization",
    "PostTrainingQuantizationProgram", "QuantInt8MkldnnPass", "QuantWeightPass", "QuantizationFreezePass",
    "QuantizationTransformPass", "QuantizationTransformPassV2", "ReplaceFakeQuantDequantPass", "WeightQuantization",
)  # fmt: skip


class _Pass:
    """A pass of older programs. Libraries subclass it when they are imported; making one is refused."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"argosy.static.quantization.{type(self).__name__} is not implemented: programs are PIR; use "
            "quantization.PTQ or quantization.QAT with a QuantConfig"
        )


def _pass(name: str) -> type | None:
    return type(name, (_Pass,), {"__module__": __name__}) if name in _NAMES else None


__getattr__, __dir__ = lazy_names(__name__, globals(), _pass)

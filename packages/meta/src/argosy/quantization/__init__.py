"""Quantisation simulated in float: training aware of it (``QAT``), and calibration of trained models (``PTQ``).

A ``QuantConfig`` says which layers get which quanter or observer; ``quantize`` puts them in, ``convert`` makes
``LinearQuanter`` and ``LinearDequanter`` of what they found, which ``jit.save`` exports.
"""

from argosy.faces import face

_IMPERATIVE = (
    "AbsmaxQuantizer", "BaseQuantizer", "HistQuantizer", "ImperativePTQ", "ImperativeQuantAware", "KLQuantizer",
    "PTQConfig", "PTQRegistry", "PerChannelAbsmaxQuantizer", "SUPPORT_ACT_QUANTIZERS", "SUPPORT_WT_QUANTIZERS",
    "default_ptq_config",
)  # fmt: skip
_TABLE = {
    "BaseObserver": "argosy.quantization.base:BaseObserver",
    "BaseQuanter": "argosy.quantization.base:BaseQuanter",
    "PTQ": "argosy.quantization.quantize:PTQ",
    "QAT": "argosy.quantization.quantize:QAT",
    "QuantConfig": "argosy.quantization.config:QuantConfig",
    "SingleLayerConfig": "argosy.quantization.config:SingleLayerConfig",
    "quanter": "argosy.quantization.factory:quanter",
    **{
        name: f"argosy.quantization.{name}"
        for name in ("config", "factory", "imperative", "observers", "quanters", "quantize", "wrapper")
    },
    "base_observer": "argosy.quantization.base_observer",
    "base_quanter": "argosy.quantization.base_quanter",
    **{name: f"argosy.quantization.imperative:{name}" for name in _IMPERATIVE},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Quantisation simulated in float: training aware of it (``QAT``), and calibration of trained models (``PTQ``).

A ``QuantConfig`` says which layers get which quanter or observer; ``quantize`` puts them in, ``convert`` makes
``LinearQuanter`` and ``LinearDequanter`` of what they found, which ``jit.save`` exports.
"""

from argosy.faces import face

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
        for name in ("config", "factory", "observers", "quanters", "quantize", "wrapper")
    },
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

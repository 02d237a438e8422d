"""Layers with quanters of their inputs and weights."""

from argosy.faces import face

_TABLE = {
    "QuantedConv2D": "argosy.nn.quant.qat.conv:QuantedConv2D",
    "QuantedLinear": "argosy.nn.quant.qat.linear:QuantedLinear",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.quant.qat.conv import QuantedConv2D as QuantedConv2D
from argosy.nn.quant.qat.linear import QuantedLinear as QuantedLinear

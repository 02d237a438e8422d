"""Written by ``python -m argosy.stubs``."""

from argosy.quantization.base import BaseObserver as BaseObserver
from argosy.quantization.base import BaseQuanter as BaseQuanter
from argosy.quantization.quantize import PTQ as PTQ
from argosy.quantization.quantize import QAT as QAT
from argosy.quantization.config import QuantConfig as QuantConfig
from argosy.quantization.config import SingleLayerConfig as SingleLayerConfig
from argosy.quantization import config as config
from argosy.quantization import factory as factory
from argosy.quantization import observers as observers
from argosy.quantization.factory import quanter as quanter
from argosy.quantization import quanters as quanters
from argosy.quantization import quantize as quantize
from argosy.quantization import wrapper as wrapper

"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.quantization.imperative import AbsmaxQuantizer as AbsmaxQuantizer
from argosy.quantization.base import BaseObserver as BaseObserver
from argosy.quantization.base import BaseQuanter as BaseQuanter
from argosy.quantization.imperative import BaseQuantizer as BaseQuantizer
from argosy.quantization.imperative import HistQuantizer as HistQuantizer
from argosy.quantization.imperative import KLQuantizer as KLQuantizer
from argosy.quantization.quantize import PTQ as PTQ
from argosy.quantization.imperative import PTQConfig as PTQConfig
from argosy.quantization.imperative import PerChannelAbsmaxQuantizer as PerChannelAbsmaxQuantizer
from argosy.quantization.quantize import QAT as QAT
from argosy.quantization.config import QuantConfig as QuantConfig
from argosy.quantization.imperative import SUPPORT_ACT_QUANTIZERS as SUPPORT_ACT_QUANTIZERS
from argosy.quantization.imperative import SUPPORT_WT_QUANTIZERS as SUPPORT_WT_QUANTIZERS
from argosy.quantization.config import SingleLayerConfig as SingleLayerConfig
from argosy.quantization import base_observer as base_observer
from argosy.quantization import base_quanter as base_quanter
from argosy.quantization import config as config
from argosy.quantization.imperative import default_ptq_config as default_ptq_config
from argosy.quantization import factory as factory
from argosy.quantization import imperative as imperative
from argosy.quantization import observers as observers
from argosy.quantization.factory import quanter as quanter
from argosy.quantization import quanters as quanters
from argosy.quantization import quantize as quantize
from argosy.quantization import wrapper as wrapper
def ImperativePTQ(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def ImperativeQuantAware(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def PTQRegistry(*args: _Any, **kwargs: _Any) -> _NoReturn: ...

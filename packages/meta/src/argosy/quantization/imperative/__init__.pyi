"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.imperative.ptq_quantizer import AbsmaxQuantizer as AbsmaxQuantizer
from argosy.quantization.imperative.ptq_quantizer import BaseQuantizer as BaseQuantizer
from argosy.quantization.imperative.ptq_quantizer import HistQuantizer as HistQuantizer
from argosy.quantization.imperative.ptq import ImperativePTQ as ImperativePTQ
from argosy.quantization.imperative.qat import ImperativeQuantAware as ImperativeQuantAware
from argosy.quantization.imperative.ptq_quantizer import KLQuantizer as KLQuantizer
from argosy.quantization.imperative.ptq_config import PTQConfig as PTQConfig
from argosy.quantization.imperative.ptq_registry import PTQRegistry as PTQRegistry
from argosy.quantization.imperative.ptq_quantizer import PerChannelAbsmaxQuantizer as PerChannelAbsmaxQuantizer
from argosy.quantization.imperative.ptq_quantizer import SUPPORT_ACT_QUANTIZERS as SUPPORT_ACT_QUANTIZERS
from argosy.quantization.imperative.ptq_quantizer import SUPPORT_WT_QUANTIZERS as SUPPORT_WT_QUANTIZERS
from argosy.quantization.imperative.ptq_config import default_ptq_config as default_ptq_config
from argosy.quantization.imperative import fuse_utils as fuse_utils
from argosy.quantization.imperative import ptq as ptq
from argosy.quantization.imperative import ptq_config as ptq_config
from argosy.quantization.imperative import ptq_quantizer as ptq_quantizer
from argosy.quantization.imperative import ptq_registry as ptq_registry
from argosy.quantization.imperative import qat as qat

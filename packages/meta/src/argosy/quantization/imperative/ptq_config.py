"""Which quantizers calibration uses."""

from __future__ import annotations

import copy
from typing import Any

from argosy.quantization.imperative.ptq_quantizer import (
    SUPPORT_ACT_QUANTIZERS,
    SUPPORT_WT_QUANTIZERS,
    BaseQuantizer,
    KLQuantizer,
    PerChannelAbsmaxQuantizer,
)

__all__ = ["PTQConfig", "default_ptq_config"]


class PTQConfig:
    """Copies of quantizers of activations, for inputs and results, and of weights.

    Raises TypeError for what is none of SUPPORT_ACT_QUANTIZERS, or of SUPPORT_WT_QUANTIZERS.
    """

    def __init__(self, activation_quantizer: BaseQuantizer, weight_quantizer: BaseQuantizer) -> None:
        for name, given, known in (
            ("activation_quantizer", activation_quantizer, SUPPORT_ACT_QUANTIZERS),
            ("weight_quantizer", weight_quantizer, SUPPORT_WT_QUANTIZERS),
        ):
            if not isinstance(given, tuple(known)):
                words = ", ".join(kind.__name__ for kind in known)
                raise TypeError(f"PTQConfig(): argument {name!r} is one of {words}, got {given!r:.60}")
        self.in_act_quantizer = copy.deepcopy(activation_quantizer)
        self.out_act_quantizer = copy.deepcopy(activation_quantizer)
        self.wt_quantizer = copy.deepcopy(weight_quantizer)
        self.quant_hook_handle: Any = None
        self.enable_in_act_quantizer = False


default_ptq_config = PTQConfig(KLQuantizer(), PerChannelAbsmaxQuantizer())

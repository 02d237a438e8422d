"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.imperative.ptq_quantizer import cal_kl_threshold as cal_kl_threshold

"""Compression of exported programs: passes that make weights smaller, and what each has done."""

from argosy_infer.compress.awq import awq
from argosy_infer.compress.gptq import gptq
from argosy_infer.compress.packing import LayerReport, QuantizationReport
from argosy_infer.compress.round_to_nearest import round_to_nearest
from argosy_infer.compress.smooth_quant import smooth_quant

__all__ = ["LayerReport", "QuantizationReport", "awq", "gptq", "round_to_nearest", "smooth_quant"]

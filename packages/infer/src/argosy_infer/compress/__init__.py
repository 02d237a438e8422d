"""Compression of exported programs: passes that make weights smaller, and what each has done."""

from argosy_infer.compress.awq import awq
from argosy_infer.compress.gptq import gptq
from argosy_infer.compress.packing import LayerReport, QuantizationReport
from argosy_infer.compress.perplexity import perplexity
from argosy_infer.compress.round_to_nearest import round_to_float8, round_to_nearest
from argosy_infer.compress.sensitivity import mixed_precision
from argosy_infer.compress.smooth_quant import smooth_quant

__all__ = [
    "LayerReport", "QuantizationReport", "awq", "gptq", "mixed_precision", "perplexity", "round_to_float8",
    "round_to_nearest", "smooth_quant",
]  # fmt: skip

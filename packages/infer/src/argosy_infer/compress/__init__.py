"""Compression of exported programs: passes that make weights smaller, and what each has done."""

from argosy_infer.compress.round_to_nearest import LayerReport, QuantizationReport, round_to_nearest

__all__ = ["LayerReport", "QuantizationReport", "round_to_nearest"]

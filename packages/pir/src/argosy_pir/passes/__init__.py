"""Passes over programs, their manager, and the text of pipelines."""

from argosy_pir.passes.manager import PassManager, PassTiming
from argosy_pir.passes.pipeline import parse_pipeline
from argosy_pir.passes.printing import print_pipeline
from argosy_pir.passes.registry import Pass, available_passes, get_pass, register_pass

__all__ = [
    "Pass",
    "PassManager",
    "PassTiming",
    "available_passes",
    "get_pass",
    "parse_pipeline",
    "print_pipeline",
    "register_pass",
]

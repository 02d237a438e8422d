"""Paddle's measured costs of operators. ``CostModel`` raises NotImplementedError: argosy estimates its own."""

from argosy.absent import absent_names

_WHY = "it is a table of times of Paddle's kernels; argosy.explain(step) estimates traffic and memory"

__all__ = ["CostModel"]  # noqa: F822
__getattr__ = absent_names(__name__, "cost_model", {"CostModel": _WHY})

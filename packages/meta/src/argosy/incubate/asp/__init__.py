"""Weights of which, of every four neighbours, two are zero (Mishra et al., 2021): how they are chosen and kept."""

from argosy.api import lazy_names

__all__ = [
    "add_supported_layer", "calculate_density", "decorate", "prune_model", "reset_excluded_layers",
    "set_excluded_layers",
]  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, globals())

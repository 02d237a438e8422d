"""Weights of which, of every four neighbours, two are zero (Mishra et al., 2021): how they are chosen and kept."""

from argosy.faces import face

_MASKS = (
    "CheckMethod", "MaskAlgo", "calculate_density", "check_mask_1d", "check_mask_2d", "check_sparsity", "create_mask",
    "get_mask_1d", "get_mask_2d_best", "get_mask_2d_greedy",
)  # fmt: skip
_PRUNING = ("add_supported_layer", "decorate", "prune_model", "reset_excluded_layers", "set_excluded_layers")
_TABLE = {
    **{name: f"argosy.incubate.asp.masks:{name}" for name in _MASKS},
    **{name: f"argosy.incubate.asp.pruning:{name}" for name in _PRUNING},
}

__all__ = ["calculate_density", *_PRUNING]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""The functions behind layers: operators of the operator library by their names (``linear``, ``softmax``, ...)."""

from argosy.api import fetch, lazy_names, operator_function

_ALSO = (
    "affine_grid", "gather_tree", "grid_sample", "interpolate", "logsigmoid", "one_hot", "pad", "pairwise_distance",
    "sequence_mask", "sigmoid", "tanh", "tanh_",
)  # fmt: skip
"""Operators that Paddle lists here as well."""


def _operators() -> list[str]:
    listed: list[str] = fetch("argosy_phi_ops.listing:layer_functions", "dir(argosy.nn.functional)")()
    return [*listed, *_ALSO]


__getattr__, __dir__ = lazy_names(__name__, globals(), operator_function, _operators)

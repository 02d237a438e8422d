"""Functions on tensors that Paddle also keeps under ``paddle.functional``."""

from argosy.faces import face, operator_function

_NAMES = frozenset({
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "einsum", "meshgrid", "norm", "split", "tensordot", "unique_consecutive", "unravel_index",
})  # fmt: skip


def _find(name: str) -> object | None:
    return operator_function(name) if name in _NAMES else None


__getattr__, __dir__ = face(__name__, {}, globals(), _find)

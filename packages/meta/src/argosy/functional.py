"""Functions on tensors that Paddle also keeps under ``paddle.functional``."""

from argosy.faces import face, operators_named

_NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "einsum", "meshgrid", "norm", "split", "tensordot", "unique_consecutive",
)  # fmt: skip


__getattr__, __dir__ = face(__name__, {}, globals(), *operators_named(_NAMES))

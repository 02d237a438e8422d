"""What a training run reports when its loss is no number, under the words that launchers look for."""

from __future__ import annotations

from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["AADIFF_ERROR", "LOSS_INF_ERROR", "LOSS_NAN_ERROR", "SHARDING_PAD_NON_ZERO_ERROR", "check_naninf"]

AADIFF_ERROR = "PaddleRecall error(101): AAdiff"
LOSS_NAN_ERROR = "PaddleRecall error(102): LossNan"
SHARDING_PAD_NON_ZERO_ERROR = "PaddleRecall error(103): ShardingPadNonZero"
LOSS_INF_ERROR = "PaddleRecall error(104): LossInf"


def check_naninf(tensor: Tensor) -> str | None:
    """The report of a tensor that holds NaN, or else infinity; None for one that holds neither."""
    if bool(get_operator("isnan")(tensor).any()):
        return LOSS_NAN_ERROR
    return LOSS_INF_ERROR if bool(get_operator("isinf")(tensor).any()) else None

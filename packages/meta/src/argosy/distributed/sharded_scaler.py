"""``shard_scaler``: a ``GradScaler`` whose ranks agree on which steps to skip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.amp import GradScaler
from argosy.distributed.environment import environment
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["shard_scaler"]


def shard_scaler(scaler: GradScaler) -> GradScaler:
    """``scaler``, which skips a step on every rank when a gradient anywhere is infinite or NaN.

    For parameters on several meshes, or of each rank's own. All ranks must unscale alike. Raises TypeError for what is
    no GradScaler.
    """
    if not isinstance(scaler, GradScaler):
        raise TypeError(f"shard_scaler takes a GradScaler, not {type(scaler).__name__}")
    environment()
    scaler._finite = _finite_everywhere  # type: ignore[method-assign]
    return scaler


def _finite_everywhere(grads: Sequence[Tensor]) -> bool:
    """Whether all gradients of all ranks are finite, looking at this rank's parts alone. A term of a sum that is not
    finite makes the sum so, too; gradients of leaves are no terms anyway.
    """
    mine = np.array(not all(_finite_part(grad) for grad in grads), np.int32)
    any_rank = np.zeros_like(mine)
    environment().communicator.all_reduce(mine, any_rank, "max")
    return not any_rank


def _finite_part(grad: Tensor) -> bool:
    payload = grad.payload
    part = Tensor._wrap(payload.local) if type(payload) is ShardedArray else grad
    return bool(part.isfinite().all())

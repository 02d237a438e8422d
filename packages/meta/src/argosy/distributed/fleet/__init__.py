"""Data-parallel training and recomputation as older scripts write them; ranks, meshes and annotations are in
``argosy.distributed``."""

from argosy.faces import face

_TRAINING = (
    "DistributedStrategy", "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler", "init",
    "is_first_worker", "is_worker", "worker_index", "worker_num",
)  # fmt: skip
_TABLE = {
    "utils": "argosy.distributed.fleet.utils",
    **{name: f"argosy.distributed.fleet.recomputation:{name}" for name in ("recompute", "recompute_sequential")},
    **{name: f"argosy.distributed.fleet.training:{name}" for name in _TRAINING},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

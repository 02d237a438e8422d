"""Data-parallel training and recomputation as older scripts write them, and the layers of their split models for one
rank; ranks, meshes and annotations are in ``argosy.distributed``."""

# at once, because Paddle has a module of this name, too: imported later, it would take the function's place
from argosy.distributed.fleet.recompute import recompute as recompute
from argosy.faces import face

_TRAINING = (
    "DistributedStrategy", "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler",
    "get_hybrid_communicate_group", "init",
    "is_first_worker", "is_worker", "worker_index", "worker_num",
)  # fmt: skip
_TABLE = {
    "utils": "argosy.distributed.fleet.utils",
    **{name: f"argosy.distributed.fleet.recompute:{name}" for name in ("recompute", "recompute_sequential")},
    **{
        name: f"argosy.distributed.fleet.{name}"
        for name in ("base", "layers", "meta_optimizers", "meta_parallel", "model")
    },
    "fleet": "argosy.distributed.fleet",
    **{
        name: f"argosy.distributed.fleet.base.topology:{name}"
        for name in ("CommunicateTopology", "HybridCommunicateGroup")
    },
    **{name: f"argosy.distributed.fleet.training:{name}" for name in _TRAINING},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

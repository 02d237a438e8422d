"""Ranks, collectives, meshes and distributed training: the face of ``argosy.distributed``.

``import argosy.distributed as dist``. Nothing is started before it is used: MPI begins with the first communication.
"""

from argosy.faces import face

_MODULES = {
    "environment": (
        "ParallelEnv", "ParallelMode", "get_rank", "get_world_size", "init_parallel_env", "is_available",
        "is_initialized",
    ),
    "group": ("Group", "destroy_process_group", "get_backend", "get_group", "new_group"),
    "reduction": ("ReduceOp",),
    "collective": (
        "all_gather", "all_reduce", "alltoall", "alltoall_single", "barrier", "broadcast", "gather", "reduce",
        "reduce_scatter", "scatter", "wait",
    ),
    "point_to_point": ("P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"),
    "objects": (
        "all_gather_object", "broadcast_object_list", "recv_object_list", "scatter_object_list", "send_object_list",
    ),
    "data_parallel": ("DataParallel",),
    "spawning": ("spawn",),
    "strategy": ("Strategy",),
    "semi_auto": (
        "dtensor_from_fn", "get_mesh", "reshard", "set_mesh", "shard_layer", "shard_tensor", "unshard_dtensor",
    ),
    "local_layer": ("LocalLayer",),
    "local_parts": ("dtensor_from_local", "dtensor_to_local", "local_map"),
    "sharded_scaler": ("shard_scaler",),
    "sharded_optimizer": ("ShardingStage1", "ShardingStage2", "ShardingStage3", "shard_optimizer"),
    "sharded_loader": ("ShardDataloader", "shard_dataloader"),
    "plans": (
        "ColWiseParallel", "PrepareLayerInput", "PrepareLayerOutput", "RowWiseParallel", "SequenceParallelBegin",
        "SequenceParallelDisable", "SequenceParallelEnable", "SequenceParallelEnd",
    ),
    "parallelizing": ("parallelize",),
    "checkpoint.saving": ("save_state_dict",),
    "checkpoint.loading": ("load_merged_state_dict", "load_state_dict"),
    "dist_model": ("DistModel", "to_static"),
}  # fmt: skip
_TABLE: dict[str, str] = {
    **{name: f"argosy.distributed.{module}:{name}" for module, names in _MODULES.items() for name in names},
    **{
        name: f"argosy_autoparallel:{name}"
        for name in ("Partial", "Placement", "ProcessMesh", "ReduceType", "Replicate", "Shard")
    },
    "communication": "argosy.distributed.communication",
    "fleet": "argosy.distributed.fleet",
    "debug": "argosy.distributed.debug",
    "rpc": "argosy.distributed.rpc",
    "checkpoint": "argosy.distributed.checkpoint",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

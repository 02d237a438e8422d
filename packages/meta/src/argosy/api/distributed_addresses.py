"""Addresses of training on several ranks: rows of :mod:`argosy.api.addresses`."""

__all__ = ["DISTRIBUTED_ADDRESSES"]

DISTRIBUTED_ADDRESSES = {
    "argosy.distributed.auto_parallel.api": """
        # Where Paddle has meshes, placements and what trains by them.
        argosy.distributed.dist_attr: DistAttr
        argosy.distributed.dist_model: DistModel to_static
        argosy.distributed.local_parts: dtensor_from_local dtensor_to_local
        argosy.distributed.parallelizing: in_auto_parallel_align_mode
        argosy.distributed.semi_auto: dtensor_from_fn get_mesh reshard set_mesh shard_layer shard_tensor
            unshard_dtensor
        argosy.distributed.sharded_loader: shard_dataloader ShardDataloader
        argosy.distributed.sharded_optimizer: shard_optimizer ShardingStage1 ShardingStage2 ShardingStage3
        argosy.distributed.sharded_scaler: shard_scaler
        argosy.distributed.strategy: Strategy
    """,
    "argosy.distributed.auto_parallel.intermediate": """
        # Models made parallel by the names of their layers.
    """,
    "argosy.distributed.auto_parallel.intermediate.context_parallel": """
        # Plans for sequences that are split.
        argosy.distributed.context_plans: ContextParallel PrepareContextParallel
    """,
    "argosy.distributed.auto_parallel.intermediate.parallelize": """
        # Where Paddle has ``parallelize``.
        argosy.distributed.parallelizing: parallelize
    """,
    "argosy.distributed.auto_parallel.intermediate.pipeline_parallel": """
        # Where stages end.
        argosy.distributed.pipeline.marks: SplitPoint
    """,
    "argosy.distributed.auto_parallel.intermediate.tensor_parallel": """
        # Plans for layers that are split.
        argosy.distributed.plans: ColWiseParallel ConvParallel PrepareLayerInput PrepareLayerOutput
            RowWiseParallel SequenceParallelBegin SequenceParallelDisable SequenceParallelEnable
            SequenceParallelEnd
    """,
    "argosy.distributed.auto_parallel.local_layer": """
        # Where Paddle has layers on parts of tensors.
        argosy.distributed.local_layer: LocalLayer
    """,
    "argosy.distributed.auto_parallel.local_map": """
        # Where Paddle has functions on parts of tensors.
        argosy.distributed.local_parts: local_map
    """,
    "argosy.distributed.auto_parallel.placement_type": """
        # Where Paddle has placements.
        argosy_autoparallel: Partial Placement ReduceType Replicate Shard
    """,
    "argosy.distributed.auto_parallel.process_mesh": """
        # Where Paddle has meshes.
        argosy_autoparallel: ProcessMesh
    """,
    "argosy.distributed.communication.batch_isend_irecv": """
        # Where Paddle has messages in batches.
        argosy.distributed.point_to_point: batch_isend_irecv _coalescing_manager=coalescing_manager P2POp
    """,
    "argosy.distributed.communication.group": """
        # Where Paddle has groups, for code that takes them from there.
        argosy.distributed.environment: is_initialized
        argosy.distributed.group: destroy_process_group get_backend _get_global_group=world_group get_group
            Group
    """,
    "argosy.distributed.fleet.meta_optimizers": """
        # Where Paddle has optimizers of split models.
    """,
    "argosy.distributed.fleet.meta_optimizers.dygraph_optimizer": """
        # Optimizers of split models.
        argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer: HybridParallelOptimizer
        argosy.distributed.fleet.meta_parallel.sharding_optimizer: DygraphShardingOptimizer
    """,
    "argosy.distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer": """
        # Where Paddle has optimizers whose states are split.
        argosy.distributed.fleet.meta_parallel.sharding_optimizer: DygraphShardingOptimizer
            DygraphShardingOptimizerV2
    """,
    "argosy.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_optimizer": """
        # Where Paddle has the optimizer of split models.
        argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer: HybridParallelOptimizer
        argosy.distributed.fleet.training: _obtain_optimizer_parameters_list=obtain_optimizer_parameters_list
    """,
    "argosy.distributed.fleet.meta_parallel.parallel_layers.random": """
        # Where Paddle has random states by name.
        argosy.distributed.fleet.layers.mpu.random: get_rng_state_tracker model_parallel_random_seed
            RNGStatesTracker
    """,
    "argosy.distributed.fleet.meta_parallel.sharding": """
        # Where Paddle has models and optimizers of split states, gradients and parameters.
    """,
    "argosy.distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2": """
        # Where Paddle has the optimizer of split states and gradients.
        argosy.distributed.sharding.group_sharded: GroupShardedOptimizerStage2
    """,
    "argosy.distributed.fleet.meta_parallel.sharding.group_sharded_stage2": """
        # Where Paddle has the model of split gradients.
        argosy.distributed.sharding.group_sharded: GroupShardedStage2
    """,
    "argosy.distributed.fleet.meta_parallel.sharding.group_sharded_stage3": """
        # Where Paddle has the model of split parameters.
        argosy.distributed.sharding.group_sharded: GroupShardedStage3
    """,
    "argosy.distributed.fleet.meta_parallel.sharding.group_sharded_utils": """
        # Where Paddle has the scaler of split gradients.
        argosy.distributed.sharding.group_sharded: GroupShardedScaler
    """,
    "argosy.distributed.fleet.model": """
        # Where Paddle has ``distributed_model``.
        argosy.distributed.fleet.meta_parallel.pipeline_parallel: PipelineParallel
        argosy.distributed.fleet.meta_parallel.wrappers: TensorParallel
        argosy.distributed.fleet.training: distributed_model
    """,
    "argosy.distributed.fleet.utils.hybrid_parallel_util": """
        # Where Paddle has ``fused_allreduce_gradients`` and the parameters of an optimizer.
        argosy.distributed.fleet.training: fused_allreduce_gradients fused_allreduce_gradients_with_group
            obtain_optimizer_parameters_list unwrap_optimizer
    """,
    "argosy.distributed.flex_checkpoint": """
        # What Paddle keeps of checkpoints that any ranks read.
        .: dcp
    """,
    "argosy.distributed.flex_checkpoint.dcp": """
        # Parts of weights.
        .: sharded_weight
    """,
    "argosy.distributed.flex_checkpoint.dcp.load_state_dict": """
        # Where Paddle reads checkpoints that any ranks read.
        argosy.distributed.checkpoint.loading: load_merged_state_dict load_state_dict
    """,
    "argosy.distributed.flex_checkpoint.dcp.save_state_dict": """
        # Where Paddle writes checkpoints that any ranks read.
        argosy.distributed.checkpoint.saving: save_state_dict
    """,
    "argosy.distributed.flex_checkpoint.dcp.sharded_weight": """
        # Parts of weights, where Paddle defines them.
        argosy.distributed.sharded_weight: build_sharded_state_dict create_sharded_weight_with_new_local
            make_replicated_sharded_weight make_tp_sharded_weight_for_checkpoint shard_weight ShardedStateDict
            ShardedWeight ShardedWeightDesc
    """,
    "argosy.distributed.models": """
        # What Paddle keeps of layers of experts.
        .: moe
    """,
    "argosy.distributed.models.moe": """
        # What Paddle keeps of layers of experts.
        .: utils
    """,
    "argosy.distributed.models.moe.utils": """
        # Which tokens go to which expert, where Paddle has it.
        argosy.distributed.expert_routing: _assign_pos=assign_pos _limit_by_capacity=limit_by_capacity
            _number_count=number_count _prune_gate_by_capacity=prune_gate_by_capacity
            _random_routing=random_routing
    """,
    "argosy.distributed.parallel_helper": """
        # Where older libraries ask whether ranks have met.
        argosy.distributed.environment: _is_parallel_ctx_initialized=is_initialized
    """,
    "argosy.distributed.utils": """
        # Tokens sent to experts and back.
        .: moe_utils
        argosy.distributed.expert_routing: global_gather global_scatter
    """,
    "argosy.distributed.utils.moe_utils": """
        # Tokens sent to experts and back, where Paddle has it.
        argosy.distributed.expert_routing: global_gather global_scatter
    """,
}

"""Paddle's flags with their defaults, as the wheel for the CPU lists them."""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULTS"]

_OFF = """
    all_blocks_convert_trt allreduce_record_one_event ap_enable_classic_gemm_epilogue apply_pass_to_program
    async_fast_eager_deletion_mode benchmark blha_use_fp32_qk_sum cache_inference_while_scope check_cuda_error
    check_infer_symbolic check_nan_inf cuda_core_int8_gemm dataloader_use_file_descriptor
    disable_dyshape_in_train dump_chunk_info dump_vmm_allocation_info eager_communication_connection einsum_opt
    enable_all2all_use_fp16 enable_ap enable_async_trace enable_auto_growth_allocator_add_lock
    enable_auto_layout_pass_in_inference enable_auto_parallel_align_mode enable_blaslt_global_search
    enable_cinn_accuracy_check enable_cinn_kernel_cache enable_collect_shape enable_compact_mem
    enable_dependency_builder_debug_info enable_dump_main_program enable_exit_when_partial_worker
    enable_fusion_fallback enable_fusion_result_check enable_graph_multi_node_sampling
    enable_neighbor_list_use_uva enable_opt_get_features enable_pir_in_executor_trace_run enable_record_memory
    enable_sparse_inner_gather enable_tracker_all2all enable_unique_name force_stride_compute_contig_out
    free_idle_chunk free_when_no_cache_hit fused_multi_transformer_op_use_mbfmha gpugraph_debug_gpu_memory
    gpugraph_enable_gpu_direct_access gpugraph_enable_hbm_table_collision_stat gpugraph_enable_print_op_debug
    gpugraph_enable_segment_merge_grads gpugraph_force_device_batch_num_equal graph_get_neighbor_id
    graph_load_in_parallel graph_metapath_split_opt init_allocated_mem log_memory_stats
    logging_pir_py_code_dump_symbolic_dims manually_trans_conv_filter merge_all_horizontal_groups
    native_compact new_executor_sequential_run new_executor_serial_run new_executor_static_build
    new_executor_use_cuda_graph new_executor_use_inplace npu_storage_format parameters_persistent_mode_in_dy2st
    pinned_memory_as_cpu_backend pir_interpreter_record_stream_for_gc_cache prim_backward prim_check_ops
    prim_enable_dynamic prim_forward print_allocator_trace_info print_ir print_kernel_run_info
    print_offload_info query_dest_rank_by_multi_node reader_queue_speed_test_mode record_alloc_event
    run_kp_kernel save_cf_stack_op save_static_runtime_data set_to_1d share_tensor_for_grad_tensor_holder
    sort_sum_gradient specialize_device_in_dy2st sync_after_alloc tensor_md5_checksum_use_binary_format
    trt_ibuilder_cache try_allocate use_accuracy_compatible_kernel use_auto_growth_pinned_allocator
    use_auto_growth_v2 use_autotune use_cuda_malloc_async_allocator use_cuda_managed_memory use_default_stream
    use_legacy_gemm use_legacy_linear use_mkldnn use_onednn use_shm_cache use_system_allocator
    use_virtual_memory_auto_growth use_xqa_optim
""".split()

_ON = """
    add_dependency_for_communication_op auto_free_cudagraph_allocations_on_launch communicator_is_sgd_optimizer
    comp_skip_default_ops convert_all_blocks eager_delete_scope enable_api_kernel_fallback
    enable_auto_detect_gpu_topo enable_auto_layout_pass enable_auto_rdma_trans enable_cse_in_dy2st
    enable_fuse_parallel_matmul_pass enable_pir_api enable_pir_in_executor enable_pir_with_pt_in_dy2st
    fast_eager_deletion_mode gpugraph_load_node_list_into_hbm graph_embedding_split_infer_mode
    logging_trunc_pir_py_code multi_node_sample_use_gpu_table new_executor_use_local_scope
    offload_inplace_tensor pir_apply_inplace_pass prim_skip_dynamic tcp_store_using_libuv use_pinned_memory
    use_stream_safe_cuda_allocator use_stride_compute_kernel use_stride_kernel
""".split()

_EMPTY = """
    cublas_dir cublaslt_device_best_config cuda_cccl_dir cuda_dir cuda_graph_blacklist cudnn_dir cupti_dir
    curand_dir cusolver_dir cusparse_dir cusparselt_dir disable_logging_op_attr_list
    dump_api_and_gradnode_python_stack_dir dump_api_python_stack_path dump_grad_node_forward_stack_path
    enable_custom_engine force_sync_ops hml_dir ir_inplace_kernel_blacklist lapack_dir logging_pir_py_code_dir
    mkl_dir mklml_dir nccl_dir nvidia_package_dir op_dir prim_forward_blacklist print_sub_graph_dir
    static_executor_perfstat_filepath tensor_md5_checksum_output_path tensorrt_dir tracer_onednn_ops_off
    tracer_onednn_ops_on win_cuda_bin_dir
""".split()

_ZERO = """
    auto_growth_chunk_size_in_mb check_nan_inf_level deep_ep_comm_prealloc_in_mb dist_threadpool_size
    dygraph_debug enable_adjust_op_order executor_log_deps_every_microseconds gpu_memory_limit_mb
    gpugraph_dedup_pull_push_mode gpugraph_offload_param_stat gpugraph_sparse_table_storage_mode
    initial_gpu_memory_in_mb inner_op_parallelism large_pool_auto_growth_chunk_size_in_mb
    large_pool_pre_alloc_in_mb low_precision_op_list max_inplace_grad_add reallocate_gpu_memory_in_mb
    small_pool_auto_growth_chunk_size_in_mb small_pool_pre_alloc_in_mb small_pool_size_in_mb
    vmm_large_pool_min_growth_size_in_mb vmm_large_pool_pre_alloc_in_mb vmm_pre_alloc_in_mb
    vmm_small_pool_min_growth_size_in_mb vmm_small_pool_pre_alloc_in_mb
""".split()

_ONE = """
    call_stack_level fuse_parameter_groups_size gpugraph_storage_mode host_trace_level
    multiple_of_cupti_buffer_size paddle_num_threads vmm_small_pool_size_in_mb
""".split()

_OTHERS: dict[str, Any] = {
    "accuracy_check_atol_bf16": 0.001,
    "accuracy_check_atol_fp16": 0.001,
    "accuracy_check_atol_fp32": 1e-06,
    "accuracy_check_rtol_bf16": 0.001,
    "accuracy_check_rtol_fp16": 0.001,
    "accuracy_check_rtol_fp32": 1e-06,
    "alignment_size": 256,
    "alloc_fill_value": -1,
    "allocator_strategy": '"auto_growth"',
    "async_trace_count": 5,
    "cinn_kernel_cache_save_path": '"/tmp/cinn/"',
    "communicator_max_merge_var_num": 20,
    "communicator_send_queue_size": 20,
    "cse_max_count": -1,
    "cuda_malloc_async_pool_memory_throttle_ratio": 0.8,
    "cur_allocated_threshold_in_gb": 55,
    "eager_delete_tensor_gb": 0.0,
    "fraction_of_cpu_memory_to_use": 1.0,
    "fraction_of_cuda_pinned_memory_to_use": 0.5,
    "fraction_of_gpu_memory_to_use": 0.92,
    "fuse_parameter_memory_size": -1.0,
    "get_host_by_name_time": 120,
    "gpu_allocator_retry_time": 10000,
    "gpugraph_hbm_table_load_factor": 0.75,
    "gpugraph_merge_grads_segment_size": 128,
    "gpugraph_offload_gather_copy_maxsize": 16,
    "gpugraph_offload_param_extends": '".w_0_moment,.b_0_moment"',
    "gpugraph_parallel_copyer_split_maxsize": 64,
    "gpugraph_parallel_stream_num": 8,
    "gpugraph_slot_feasign_max_num": 5,
    "graph_neighbor_size_percent": 1.0,
    "initial_cpu_memory_in_mb": 500,
    "jit_engine_type": '"Predictor"',
    "local_exe_sub_scope_limit": 256.0,
    "logging_pir_py_code_int_tensor_element_limit": 2048,
    "max_reserved_threshold_in_gb": 70,
    "memory_fraction_of_eager_deletion": 1.0,
    "multi_block_attention_min_partition_size": 1024,
    "offload_retry_times": -1,
    "pir_broadcast_tree_limit": 32,
    "search_cache_max_number": 1000000,
    "static_runtime_data_save_path": '"./"',
    "tcp_max_syn_backlog": 2048,
    "tensor_md5_checksum_precision": 3,
    "tensor_operants_mode": '"eager"',
    "tracer_profile_fname": '"xxgperf"',
    "trt_engine_serialized_path": '"./"',
    "trt_min_group_size": 3,
}

DEFAULTS: dict[str, Any] = {
    "FLAGS_" + name: value
    for name, value in (
        *((name, False) for name in _OFF),
        *((name, True) for name in _ON),
        *((name, "") for name in _EMPTY),
        *((name, 0) for name in _ZERO),
        *((name, 1) for name in _ONE),
        *_OTHERS.items(),
    )
}
"""Every flag, by its full name. The type of the default is the type of the flag."""

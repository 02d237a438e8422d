"""Names that packages offer: by package, where each is defined.

A row reads as an import: the module (with a dot in front, one of the package itself) and the names that come from it,
``name=own`` for one that is called otherwise there. Before the colon, ``.`` stands for the package's own modules and
``argosy.utils.`` for those of another one, ``operators`` for the operator library, and ``absent word`` for names that
only say why they are not implemented (``absent.REASONS[word]``). Libraries for one domain are in `domain_names`.
"""

from argosy.api.domain_names import DOMAIN_NAMES

__all__ = ["NAMES"]

NAMES = {
    "argosy": """
        .: amp array_api audio autograd base _C_ops callbacks common_ops_import compat cost_model cuda device
            distributed distribution fft framework functional geometric hapi hub incubate inference io jit _legacy_C_ops
            library linalg metric models nn onnx optimizer pir profiler quantization random reader regularizer
            science signal sparse special static sysconfig tensor text utils version vision
        .amp.support: autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
            is_autocast_enabled
        .compat: disable_compat enable_compat
        .compat.nn.functional: softmax
        .device.description: get_default_device set_default_device
        .device.places: CPUPlace CustomPlace get_device is_compiled_with_cinn is_compiled_with_cuda
            is_compiled_with_custom_device is_compiled_with_distribute is_compiled_with_ipu
            is_compiled_with_rocm is_compiled_with_xpu set_device
        .distributed.data_parallel: DataParallel
        .framework.: core
        .framework.asynchronous_saving: async_save clear_async_save_task_queue
        .framework.creation: as_tensor assign create_parameter from_numpy is_tensor to_tensor
        .framework.default_dtype: get_default_dtype pstring raw set_default_dtype
        .framework.flags: get_flags set_flags
        .framework.modes: disable_static enable_static in_dynamic_mode
        .framework.other_devices: CUDAPinnedPlace CUDAPlace disable_signal_handler get_cuda_rng_state
            set_cuda_rng_state XPUPinnedPlace
        .framework.param_attr: ParamAttr
        .framework.random: get_rng_state manual_seed=seed seed set_rng_state
        .framework.readers: batch check_shape MmapStorage
        .framework.serialization: load save
        .framework.typed_creation: asarray BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor
            FloatTensor HalfTensor IntTensor LongTensor ShortTensor
        .hapi.model: Model
        .hapi.operations: flops
        .hapi.summary: summary
        .jit.explanation: explain
        .nn.lazy: LazyGuard
        .runtime: Tensor
        .signal.window_functions: bartlett_window blackman_window hamming_window hann_window kaiser_window
        .static.program: device_guard
        .utils.dlpack: from_dlpack to_dlpack
        argosy_autograd: enable_grad grad is_grad_enabled no_grad set_grad_enabled
        argosy_tensorcore.dtype: bfloat16 bool=bool_ cdouble=complex128 cfloat=complex64 complex128 complex64
            double=float64 dtype=DType finfo float16 float32 float64 float8_e4m3fn float8_e5m2 float=float32
            half=float16 iinfo int16 int32 int64 int8 int=int32 long=int64 short=int16 uint16 uint32 uint64
            uint8
        argosy_tensorcore.printing: set_printoptions
        argosy_tensorcore.rng: Generator
        argosy_tensorcore.shape: Size
    """,
    "argosy.amp": """
        .: debugging
        .casting: amp_guard=auto_cast auto_cast autocast=auto_cast
        .decoration: amp_decorate=decorate decorate
        .lists: black_list white_list
        .scaler: AmpScaler=GradScaler GradScaler
        .support: get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled
            is_bfloat16_supported is_float16_supported
    """,
    "argosy.autograd": """
        argosy_autograd: backward biharmonic curl custom_jvp custom_vjp detect_anomaly divergence enable_grad
            Function=PyLayer grad hessian is_grad_enabled jacobian jet laplacian linear_operator no_grad PyLayer
            PyLayerContext saved_tensors_hooks set_detect_anomaly set_grad_enabled
    """,
    "argosy.compat": """
        .: nn
        .functions: equal max median min nanmedian seed slogdet sort split unique
        absent torch: disable_compat enable_compat
    """,
    "argosy.compat.nn": """
        .: functional
        .attention: MultiheadAttention
        .layers: AvgPool1D AvgPool1d=AvgPool1D AvgPool2D AvgPool2d=AvgPool2D AvgPool3D AvgPool3d=AvgPool3D
            Linear Softmax Unfold
    """,
    "argosy.device": """
        .: cuda custom_device xpu
        .description: Device
        .places: _convert_to_place=as_optional_place CPUPlace get_available_device get_device
            is_compiled_with_cinn is_compiled_with_cuda is_compiled_with_custom_device
            is_compiled_with_distribute is_compiled_with_ipu is_compiled_with_rocm is_compiled_with_xpu
            set_device
        .queries: device=device_guard device_count device_guard empty_cache get_all_custom_device_type
            get_all_device_type get_available_custom_device get_cudnn_version IPUPlace is_available
            is_bf16_supported synchronize XPUPlace
        .streams: current_stream Event get_device_capability get_device_name get_device_properties
            get_stream_from_external ipc_collect is_current_stream_capturing max_memory_allocated
            max_memory_reserved memory_allocated memory_reserved reset_max_memory_allocated
            reset_max_memory_reserved reset_peak_memory_stats set_stream Stream stream_guard StreamContext
        .tensor_types: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor get_rng_state
            HalfTensor IntTensor LongTensor manual_seed set_rng_state ShortTensor
    """,
    "argosy.device.custom_device": """
        argosy.device.queries: empty_cache synchronize
        argosy.device.streams: current_stream Event get_device_properties max_memory_allocated
            max_memory_reserved memory_allocated memory_reserved reset_max_memory_allocated
            reset_max_memory_reserved Stream
        argosy.device.tensor_types: get_rng_state manual_seed set_rng_state
    """,
    "argosy.distributed": """
        .: auto_parallel checkpoint collective communication debug fleet flex_checkpoint fsdp launch models
            parallel parallel_helper rpc sharding utils
        .communication.: stream
        .checkpoint.loading: load_merged_state_dict load_state_dict
        .checkpoint.saving: save_state_dict
        .collective_report: report_collectives
        .collective: all_gather all_reduce alltoall alltoall_single barrier broadcast gather reduce
            reduce_scatter scatter wait
        .context_plans: ContextParallel PrepareContextParallel
        .data_parallel: DataParallel
        .dist_attr: DistAttr
        .dist_model: DistModel to_static
        .environment: get_rank get_world_size is_available is_initialized ParallelEnv ParallelMode
        .gloo: gloo_barrier gloo_init_parallel_env gloo_release
        .group: create_nccl_config destroy_process_group get_backend get_group Group init_parallel_env new_group
            restart_process_group shutdown_process_group
        .local_layer: LocalLayer
        .local_parts: dtensor_from_local dtensor_to_local local_map
        .objects: all_gather_object broadcast_object_list recv_object_list scatter_object_list send_object_list
        .parallelizing: in_auto_parallel_align_mode parallelize
        .pipeline.marks: SplitPoint
        .plans: ColWiseParallel ConvParallel PrepareLayerInput PrepareLayerOutput RowWiseParallel
            SequenceParallelBegin SequenceParallelDisable SequenceParallelEnable SequenceParallelEnd
        .point_to_point: batch_isend_irecv irecv isend P2POp recv send
        .reduction: ReduceOp
        .semi_auto: dtensor_from_fn get_mesh reshard set_mesh shard_layer shard_tensor unshard_dtensor
        .sharded_loader: shard_dataloader ShardDataloader
        .sharded_optimizer: shard_optimizer ShardingStage1 ShardingStage2 ShardingStage3
        .sharded_scaler: shard_scaler
        .sharded_weight: build_sharded_state_dict shard_weight ShardedStateDict ShardedWeight
        .spawning: spawn
        .split_operation: split
        .strategy: Strategy
        .auto_parallel.high_level_api: to_distributed
        .auto_parallel.interface: shard_op
        .sharding.group_sharded: group_sharded_parallel save_group_sharded_model
        absent parameter-servers: CountFilterEntry InMemoryDataset io ProbabilityEntry QueueDataset ShowClickEntry
        argosy_autoparallel: Partial Placement ProcessMesh ReduceType Replicate Shard
            count_collectives strict
    """,
    "argosy.distributed.auto_parallel": """
        .: api high_level_api interface intermediate local_layer local_map placement_type process_mesh
        .interface: create_mesh shard_op
        argosy.hapi.engine: Engine
        argosy.distributed.semi_auto: get_mesh reshard set_mesh shard_tensor
        argosy.distributed.strategy: Strategy
        argosy_autoparallel: ProcessMesh
    """,
    "argosy.distributed.collective": """
        argosy.distributed.environment: is_available is_initialized
        argosy.distributed.fleet.layers.mpu.mp_ops: _c_concat _c_identity _c_lookup_table
            _c_softmax_with_cross_entropy _c_split _mp_allreduce
        argosy.distributed.group: _get_default_group=world_group _get_global_group=world_group get_group Group
            new_group
        argosy.distributed.split_operation: split
    """,
    "argosy.distributed.fleet": """
        .: base layers meta_optimizers meta_parallel model utils
        .base.role_maker: PaddleCloudRoleMaker Role UserDefinedRoleMaker
        .base.topology: CommunicateTopology HybridCommunicateGroup
        .base.util_factory: UtilBase util
        .recompute.recompute: recompute recompute_sequential
        .strategy: DistributedStrategy
        .instance: all_reduce barrier_worker collective_perf Fleet fleet get_hybrid_communicate_group init
            is_coordinator is_first_worker is_server is_worker local_device_ids local_rank minimize
            node_num nranks=worker_num rank=worker_index rank_in_node=local_rank server_endpoints
            server_num worker_endpoints worker_index worker_num world_device_ids
            world_size=worker_num
        .training: distributed_model distributed_optimizer distributed_scaler
        .utils.log_util: get_log_level_code get_log_level_name set_log_level
        absent fleet: check_save_pre_patch_done get_fl_client init_coordinator init_server init_worker
            load_inference_model load_model load_one_table make_fl_strategy print_table_stat run_server
            save_cache_model save_cache_table save_dense_params save_inference_model save_one_table
            save_persistables server_index set_date shrink stop_worker
        absent parameter-servers: MultiSlotDataGenerator MultiSlotStringDataGenerator
        argosy.distributed.: auto=auto_parallel
    """,
    "argosy.distributed.fleet.utils": """
        .: hybrid_parallel_util log_util mix_precision_utils sequence_parallel_utils timer_helper
        .fs: LocalFS
        absent parameter-servers: DistributedInfer
        absent hadoop: HDFSClient
        argosy.distributed.fleet.recompute.recompute: recompute
    """,
    "argosy.distributed.sharding": """
        .group_sharded: group_sharded_parallel save_group_sharded_model
    """,
    "argosy.framework": """
        .: core io random recall_error
        .asynchronous_saving: async_save
        .default_dtype: get_default_dtype set_default_dtype
        .flags: get_flags set_flags
        .layer_helper: LayerHelper
        .mode_restrictions: dygraph_not_support dygraph_only _dygraph_tracer=tracer
            _no_check_dy2st_diff=no_check_of_views
        .modes: disable_static enable_static in_dynamic_mode in_dynamic_or_pir_mode in_pir_mode use_pir_api
        .other_devices: CUDAPinnedPlace CUDAPlace disable_signal_handler fp8_fp8_half_gemm_fused
            get_cuda_rng_state set_cuda_rng_state XPUPinnedPlace
        .param_attr: ParamAttr
        .random: seed
        .readers: batch check_shape MmapStorage
        .serialization: load save
        argosy.: base
        argosy.device.places: CPUPlace _current_expected_place=expected_place
            _current_expected_place_=expected_place _get_paddle_place=as_optional_place
        argosy.nn.parameter: Parameter
        argosy.static.program: Block Program
        argosy_autograd: grad no_grad
        argosy_tensorcore.dtype: convert_np_dtype_to_dtype_=as_dtype dtype=DType
        absent graph: IrGraph
    """,
    "argosy.framework.core": """
        absent graph: Graph
    """,
    "argosy.io": """
        .: dataloader
        .dataloader.collate: default_collate_fn default_convert_fn
        .dataloader.loader: DataLoader
        .dataloader.worker: get_worker_info WorkerInfo
        .dataset: ChainDataset ComposeDataset ConcatDataset Dataset IterableDataset random_split Subset
            TensorDataset
        .sampler: BatchSampler DistributedBatchSampler RandomSampler Sampler SequenceSampler SubsetRandomSampler
            WeightedRandomSampler
    """,
    "argosy.io.dataloader": """
        .collate: default_collate_fn default_convert_fn
        .loader: DataLoader
        .worker: get_worker_info WorkerInfo
        argosy.io.dataset: ConcatDataset Dataset IterableDataset random_split Subset TensorDataset
        argosy.io.sampler: BatchSampler DistributedBatchSampler RandomSampler Sampler SequenceSampler
    """,
    "argosy.jit": """
        .: marker
        .counting: count_compiles
        .decorate: enable_to_static ignore_module not_to_static to_static
        .export: save
        .input_spec: InputSpec
        .reporting: clear_report report set_code_level set_verbosity
        .static_function: StaticFunction
        .translated: load TranslatedLayer
    """,
    "argosy.library": """
        argosy_phi_ops.custom_ops.declaration: custom_op CustomOperator
        argosy_phi_ops.errors: OperatorError ShapeError
        argosy_pir.types: TensorType
    """,
    "argosy.metric": """
        .auc: Auc
        .binary: Precision Recall
        .metric: Metric
        .topk: Accuracy accuracy
    """,
    "argosy.nn": """
        .: attention decode functional init initializer layer loss quant utils
        .activation: CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax
            Maxout Mish PReLU ReLU ReLU6 RReLU SELU Sigmoid SiLU Silu Softmax Softmax2D Softplus Softshrink
            Softsign Swish Tanh Tanhshrink ThresholdedReLU
        .adaptive_pooling: AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D
            AdaptiveMaxPool1d=AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool2d=AdaptiveMaxPool2D
            AdaptiveMaxPool3D AdaptiveMaxPool3d=AdaptiveMaxPool3D
        .adaptive_softmax: AdaptiveLogSoftmaxWithLoss
        .attention: MultiHeadAttention
        .batch_norm: BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D SyncBatchNorm
        .cells: GRUCell LSTMCell RNNCellBase SimpleRNNCell
        .channel_norm: GroupNorm InstanceNorm1D InstanceNorm2D InstanceNorm3D LocalResponseNorm SpectralNorm
        .clip: ClipGradByGlobalNorm ClipGradByNorm ClipGradByValue
        .common: Embedding Flatten Identity Linear
        .container: LayerDict LayerList ModuleDict=LayerDict ModuleList=LayerList ParameterDict ParameterList
            Sequential
        .conv: Conv1D Conv1d=Conv1D Conv1DTranspose Conv2D Conv2d=Conv2D Conv2DTranspose Conv3D Conv3d=Conv3D
            Conv3DTranspose
        .decode: BeamSearchDecoder dynamic_decode
        .dropout: AlphaDropout Dropout Dropout2D Dropout3D FeatureAlphaDropout
        .geometry: Bilinear ChannelShuffle CosineSimilarity Fold PairwiseDistance PixelShuffle PixelUnshuffle
            Unflatten Unfold Upsample UpsamplingBilinear2D UpsamplingNearest2D
        .layer: Layer Module=Layer
        .loss: BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss CTCLoss GaussianNLLLoss
            HingeEmbeddingLoss HSigmoidLoss KLDivLoss L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss
            MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss RNNTLoss SmoothL1Loss SoftMarginLoss
            TripletMarginLoss TripletMarginWithDistanceLoss
        .norm: LayerNorm RMSNorm
        .padding: CircularPad1D CircularPad1d=CircularPad1D CircularPad2D CircularPad2d=CircularPad2D
            CircularPad3D CircularPad3d=CircularPad3D ConstantPad1D ConstantPad1d=ConstantPad1D ConstantPad2D
            ConstantPad2d=ConstantPad2D ConstantPad3D ConstantPad3d=ConstantPad3D Pad1D Pad2D Pad3D
            ReflectionPad1D ReflectionPad1d=ReflectionPad1D ReflectionPad2D ReflectionPad2d=ReflectionPad2D
            ReflectionPad3D ReflectionPad3d=ReflectionPad3D ReplicationPad1D ReplicationPad1d=ReplicationPad1D
            ReplicationPad2D ReplicationPad2d=ReplicationPad2D ReplicationPad3D
            ReplicationPad3d=ReplicationPad3D ZeroPad1D ZeroPad2D ZeroPad3D
        .parameter: Parameter
        .pooling: AvgPool1D AvgPool2D AvgPool3D LPPool1D LPPool1d=LPPool1D LPPool2D LPPool2d=LPPool2D MaxPool1D
            MaxPool2D MaxPool3D
        .recurrent: BiRNN GRU LSTM RNN SimpleRNN
        .transformer: Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
            TransformerEncoderLayer
        .unpooling: FractionalMaxPool2D FractionalMaxPool3D MaxUnPool1D MaxUnPool2D MaxUnPool3D
    """,
    "argosy.nn.functional": """
        .: flash_attention
        .experts: moe_permute moe_unpermute
        .flash_attention: flash_attention_v3_varlen flash_attn_qkvpacked flash_attn_varlen_qkvpacked
            scaled_dot_product_attention
        .masked_attention: flashmask_attention sparse_attention
        argosy.nn.adaptive_softmax: adaptive_log_softmax_with_loss
        argosy.nn.compositions: alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout gumbel_softmax
            maxout rrelu silu
        argosy.nn.geometry_functions: fold local_response_norm lp_pool1d lp_pool2d temporal_shift unfold
            upsample zeropad2d
        argosy.nn.lookup: embedding
        argosy.nn.loss_functions: cosine_embedding_loss dice_loss gaussian_nll_loss log_loss
            multi_label_margin_loss multi_label_soft_margin_loss multi_margin_loss npair_loss poisson_nll_loss
            sigmoid_focal_loss triplet_margin_loss triplet_margin_with_distance_loss
        argosy.nn.regularization: dropout
        argosy.nn.sampled_classes: class_center_sample
        argosy.nn.sequence_losses: ctc_loss hsigmoid_loss margin_cross_entropy rnnt_loss
        argosy.nn.statistics: batch_norm
        argosy.nn.unpooling: fractional_max_pool2d fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d
    """,
    "argosy.nn.functional.flash_attention": """
        argosy.nn.functional.masked_attention: flashmask_attention
    """,
    "argosy.nn.layer": """
        .: activation common container conv distance loss norm pooling rnn transformer vision
    """,
    "argosy.nn.quant": """
        .: fake_quant format functional_layers qat quant_layers quantized_linear stub
        .fake_quant: QuantStub=MovingAverageAbsMaxScale
        .functional_layers: add concat divide flatten FloatFunctionalLayer matmul multiply reshape subtract transpose
        .stub: QuanterStub Stub
        operators: llm_int8_linear weight_dequantize weight_only_linear weight_quantize
    """,
    "argosy.nn.quant.qat": """
        .conv: QuantedConv2D
        .linear: QuantedLinear
    """,
    "argosy.nn.quant.quantized_linear": """
        operators: llm_int8_linear weight_dequantize weight_only_linear weight_quantize
    """,
    "argosy.nn.utils": """
        .clipping: clip_grad_norm_ clip_grad_value_
        .spectral_normalization: spectral_norm
        .vectors: parameters_to_vector vector_to_parameters
        .weight_normalization: remove_weight_norm weight_norm
    """,
    "argosy.optimizer": """
        .: lr
        .adam: Adam AdamW
        .adaptive: Adadelta Adagrad RMSProp
        .averaging: ASGD Rprop
        .lbfgs: LBFGS
        .moments: Adamax Lamb NAdam RAdam
        .momentum: Momentum SGD
        .optimizer: Optimizer
    """,
    "argosy.profiler": """
        .profiler: Profiler
        .recording: RecordEvent
        .states: make_scheduler ProfilerState ProfilerTarget SortedKeys SummaryView TracerEventType
        .trace: export_chrome_tracing export_protobuf load_profiler_result
    """,
    "argosy.signal": """
        .short_time: frame istft overlap_add stft
    """,
    "argosy.static": """
        .: amp nn quantization
        .differentiation: append_backward gradients
        .executor: BuildStrategy CompiledProgram Executor
        .files: deserialize_persistables deserialize_program load load_from_file load_inference_model
            load_program_state normalize_program save save_inference_model save_to_file serialize_persistables
            serialize_program set_program_state
        .places: cpu_places cuda_places xpu_places
        .program: data default_main_program default_startup_program device_guard name_scope Program
            program_guard
        .python_functions: Print py_func WeightNormParamAttr
        .scope: global_scope Scope scope_guard
        .statistics: accuracy auc create_global_var ExponentialMovingAverage
        argosy.framework.creation: create_parameter
        argosy.jit.input_spec: InputSpec
        argosy.runtime: Variable=Tensor
        absent ipu: ipu_shard_guard IpuCompiledProgram IpuStrategy set_ipu_shard
        absent server-metrics: ctr_metric_bundle
    """,
    "argosy.static.amp": """
        .: bf16
        .decoration: decorate
        .lists: AutoMixedPrecisionLists cast_model_to_fp16 cast_parameters_to_fp16 CustomOpLists fp16_guard
    """,
    "argosy.static.quantization": """
        .: quant_config utils
    """,
    "argosy.utils": """
        .: cpp_extension dlpack download unique_name
        .checks: deprecated require_version run_check try_import
        argosy.nn.nesting: flatten map_structure pack_sequence_as=pack_as
    """,
} | DOMAIN_NAMES

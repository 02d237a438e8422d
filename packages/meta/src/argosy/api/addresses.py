"""Addresses: modules without a file, made of names that are defined elsewhere.

Rows are those of :mod:`argosy.api.names`; the lines at the head of an address are its docstring.
"""

from argosy.api.distributed_addresses import DISTRIBUTED_ADDRESSES

__all__ = ["ADDRESSES"]

ADDRESSES = {
    "argosy._C_ops": """
        # Operators that libraries call past Paddle's functions, with all their attributes in the order of
        # Paddle's operator definitions. Only those that have no function of that order and meaning are listed
        # here; others are missing on purpose: what they take differs from what the function of the same name
        # takes.
        argosy.nn.statistics: batch_norm=batch_norm_with_statistics
        argosy.vision.ops.suppression: multiclass_nms3
    """,
    "argosy._legacy_C_ops": """
        # Operators as older libraries call them past Paddle's functions.
        argosy.vision.ops.legacy_operators: argsort box_coder distribute_fpn_proposals
            fake_channel_wise_quantize_dequantize_abs_max generate_proposals_v2 matrix_nms multiclass_nms3
    """,
    "argosy.autograd.py_layer": """
        # Where Paddle has ``PyLayer``, for code that takes it from there.
        argosy_autograd.pylayer: PyLayer PyLayerContext
    """,
    "argosy.base": """
        # What older scripts take from Paddle's inner package.
        .: core data_feeder dygraph framework layer_helper libpaddle
        argosy.device.places: CPUPlace is_compiled_with_cinn is_compiled_with_cuda is_compiled_with_rocm
            is_compiled_with_xpu
        argosy.framework.flags: get_flags set_flags
        argosy.framework.modes: in_dygraph_mode=in_dynamic_mode in_pir_mode
        argosy.framework.other_devices: CUDAPinnedPlace CUDAPlace
        argosy.framework.param_attr: ParamAttr
        argosy.runtime: Variable=Tensor
        argosy.static.executor: Executor
        argosy.static.program: default_main_program default_startup_program device_guard name_scope Program
            program_guard
        argosy.static.scope: global_scope scope_guard
        argosy.utils.: unique_name
    """,
    "argosy.base.core": """
        # ``argosy.framework.core`` where older scripts look for it.
        argosy.device.places: CustomPlace
        argosy.framework.core: AmpLevel CPUPlace CUDAPinnedPlace CUDAPlace DataType default_cpu_generator
            default_cuda_generator default_custom_device_generator default_xpu_generator DenseTensor
            device_memory_stat_current_value device_memory_stat_peak_value eager EOFException frombuffer
            Generator get_cuda_device_count get_custom_device_count Graph _has_grad is_compiled_with_cinn
            is_compiled_with_cuda is_compiled_with_custom_device is_compiled_with_distribute
            is_compiled_with_ipu is_compiled_with_nccl is_compiled_with_rocm is_compiled_with_xpu LoDTensor
            nvprof_enable_record_event nvprof_nvtx_pop nvprof_nvtx_push nvprof_start nvprof_stop Place
            _set_has_grad _set_prim_all_enabled _set_prim_backward_blacklist _set_prim_backward_enabled
            set_prim_eager_enabled _set_prim_forward_blacklist _set_prim_forward_enabled size_of_dtype VarDesc
    """,
    "argosy.base.data_feeder": """
        # Where Paddle defines checks of arguments.
        argosy.framework.layer_helper: check_dtype check_type check_variable_and_dtype convert_dtype
    """,
    "argosy.base.dygraph": """
        # The eager mode where older scripts look for it.
        argosy.framework.dygraph: guard to_variable
        argosy_autograd: no_grad
    """,
    "argosy.base.dygraph.base": """
        # The eager mode, under its older address.
        argosy.framework.dygraph: guard to_variable
        argosy_autograd: enable_grad grad no_grad
    """,
    "argosy.base.executor": """
        # Where Paddle has ``Executor``.
        argosy.static.executor: Executor
        argosy.static.scope: global_scope scope_guard
    """,
    "argosy.base.framework": """
        # Parameters, variables, programs and modes where older scripts look for them.
        argosy.base.: core
        argosy.device.places: _current_expected_place=expected_place _current_expected_place_=expected_place
            _get_paddle_place=as_optional_place is_compiled_with_cinn is_compiled_with_cuda
            is_compiled_with_distribute is_compiled_with_rocm is_compiled_with_xpu
            _set_expected_place=set_device
        argosy.framework.dygraph: _create_tensor=create_tensor
        argosy.framework.flags: get_flags set_flags
        argosy.framework.mode_restrictions: dygraph_not_support dygraph_only _dygraph_tracer=tracer
            fake_interface_only non_static_only static_only _stride_in_no_check_dy2st_diff=no_check_of_views
        argosy.framework.modes: in_dygraph_mode=in_dynamic_mode in_dynamic_mode in_dynamic_or_pir_mode
            in_pir_mode use_pir_api
        argosy.framework.other_devices: disable_signal_handler
        argosy.nn.parameter: EagerParamBase=Parameter Parameter
        argosy.runtime: Variable=Tensor
        argosy.static.places: cpu_places
        argosy.static.program: Block default_main_program default_startup_program device_guard name_scope
            Program program_guard
        argosy.utils.: unique_name
        argosy_tensorcore.dtype: convert_np_dtype_to_dtype_=as_dtype
    """,
    "argosy.base.layer_helper": """
        # Where Paddle defines ``LayerHelper``.
        argosy.framework.layer_helper: LayerHelper
    """,
    "argosy.base.libpaddle": """
        # What libraries take from Paddle's extension module itself.
        argosy.: pir
        argosy.framework.core: AmpLevel CPUPlace DataType DenseTensor Generator LoDTensor Place
    """,
    "argosy.callbacks": """
        # Callbacks of ``Model``.
        argosy.hapi.callbacks: Callback EarlyStopping History LRScheduler ModelCheckpoint
        argosy.hapi.monitors: ReduceLROnPlateau TensorBoard VisualDL WandbCallback
        argosy.hapi.summaries: SummaryWriter
        argosy.hapi.progress: ProgBarLogger
    """,
    "argosy.common_ops_import": """
        # What authors of layers for older versions import.
        argosy.framework.layer_helper: check_dtype check_type check_variable_and_dtype convert_dtype
            convert_np_dtype_to_dtype_ in_dygraph_mode LayerHelper Variable
        argosy.static.program: default_main_program device_guard
    """,
    "argosy.cost_model": """
        # Paddle's measured costs of operators. ``CostModel`` raises NotImplementedError: argosy estimates its
        # own.
        absent cost-table: CostModel
    """,
    "argosy.cuda": """
        # Questions about CUDA under another framework's names, as Paddle keeps them.
        argosy.device.cuda_runtime: check_error cudart current_device is_initialized mem_get_info
        argosy.device.places: set_device
        argosy.device.queries: device=device_guard device_count empty_cache is_available is_bf16_supported
            synchronize
        argosy.device.streams: current_stream Event get_device_capability get_device_name get_device_properties
            get_stream_from_external ipc_collect is_current_stream_capturing max_memory_allocated
            max_memory_reserved memory_allocated memory_reserved reset_max_memory_allocated
            reset_max_memory_reserved reset_peak_memory_stats set_stream Stream stream=stream_guard
            StreamContext
        argosy.device.tensor_types: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor
            get_rng_state HalfTensor IntTensor LongTensor manual_seed manual_seed_all=manual_seed set_rng_state
            ShortTensor
    """,
    "argosy.distribution.exponential_family": """
        # Where Paddle keeps the base of exponential families.
        argosy.distribution.distribution: ExponentialFamily
    """,
    "argosy.distribution.transform": """
        # Functions of random variables, with their inverses and the logarithms of their Jacobians'
        # determinants. ``base`` holds the class that all derive from, ``elementwise`` and ``vectors`` the
        # transforms of numbers and vectors, ``composed`` those made of others.
        argosy.distribution.transforms.base: ChainTransform Transform Type
        argosy.distribution.transforms.combinators: IndependentTransform StackTransform
        argosy.distribution.transforms.elementwise: AbsTransform AffineTransform ExpTransform PowerTransform
            SigmoidTransform TanhTransform
        argosy.distribution.transforms.vectors: ReshapeTransform SoftmaxTransform StickBreakingTransform
    """,
    "argosy.distribution.transformed_distribution": """
        # Where Paddle defines ``TransformedDistribution``.
        argosy.distribution.transforms.base: TransformedDistribution
    """,
    "argosy.framework.io": """
        # Where Paddle keeps ``save`` and ``load``.
        argosy.framework.serialization: load save
        argosy.nn.parameter: EagerParamBase=Parameter
    """,
    "argosy.functional": """
        # Functions on tensors that Paddle also keeps under ``paddle.functional``.
        operators: atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
            cdist einsum meshgrid norm split tensordot unique_consecutive
    """,
    "argosy.hapi.dynamic_flops": """
        # ``flops`` where Paddle defines it.
        argosy.hapi.operations: dynamic_flops=flops flops
    """,
    "argosy.incubate.distributed": """
        # What Paddle keeps under ``incubate.distributed``.
        .: fleet
    """,
    "argosy.incubate.distributed.fleet": """
        # Recomputation, under its public address in Paddle.
        argosy.distributed.fleet.recompute.recompute: recompute_hybrid recompute_sequential
    """,
    "argosy.incubate.nn.layer": """
        # Where Paddle defines fused layers.
        .: fused_dropout_add fused_linear fused_transformer
    """,
    "argosy.incubate.nn.layer.fused_dropout_add": """
        # The layer, under the name of its module in Paddle.
        argosy.incubate.nn.linear: FusedDropoutAdd
    """,
    "argosy.incubate.nn.layer.fused_linear": """
        # The layer, under the name of its module in Paddle.
        argosy.incubate.nn.linear: FusedLinear
    """,
    "argosy.incubate.nn.layer.fused_transformer": """
        # Layers, under the name of their module in Paddle.
        argosy.incubate.nn.linear: FusedBiasDropoutResidualLayerNorm
        argosy.incubate.nn.transformer: FusedFeedForward FusedMultiHeadAttention FusedMultiTransformer
            FusedTransformerEncoderLayer
    """,
    "argosy.incubate.tensor": """
        # What Paddle keeps under ``incubate.tensor``.
        .: manipulation
    """,
    "argosy.incubate.tensor.manipulation": """
        # Copies between the memories of a device and of the host.
        absent offload: async_offload async_offload_with_offset async_reload create_async_load
            create_xpu_async_load enable_activation_offload
    """,
    "argosy.io.dataloader.dataloader_iter": """
        # Where Paddle has the iterators of a ``DataLoader``: here they are iterators like any other.
        collections.abc: _DataLoaderIterBase=Iterator
    """,
    "argosy.linalg": """
        # Linear algebra: the operators of the operator library that Paddle keeps under ``paddle.linalg``.
        argosy.framework.other_devices: fp8_fp8_half_gemm_fused
        operators: cdist cholesky cholesky_inverse cholesky_solve cond corrcoef cov cross det diagonal dot eig
            eigh eigvals eigvalsh householder_product inv lstsq lu lu_solve lu_unpack matmul matrix_exp
            matrix_norm matrix_power matrix_rank matrix_transpose multi_dot norm ormqr pca_lowrank pinv qr
            slogdet solve svd svd_lowrank svdvals triangular_solve vecdot vector_norm
    """,
    "argosy.nn.initializer.lazy_init": """
        # Layers without values, under the older address.
        argosy.nn.lazy: LazyGuard
    """,
    "argosy.nn.layer.activation": """
        # Paddle's module of activations, for code that takes layers from where Paddle defines them.
        argosy.nn.activation: CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid
            LogSoftmax Maxout Mish PReLU ReLU ReLU6 RReLU SELU Sigmoid Silu Softmax Softmax2D Softplus
            Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU
    """,
    "argosy.nn.layer.common": """
        # Paddle's module of linear maps, dropout and padding, for code that takes layers from where Paddle
        # defines them.
        argosy.nn.common: Embedding Flatten Identity Linear
        argosy.nn.dropout: AlphaDropout Dropout Dropout2D Dropout3D FeatureAlphaDropout
        argosy.nn.geometry: Bilinear CosineSimilarity Fold Unflatten Unfold Upsample UpsamplingBilinear2D
            UpsamplingNearest2D
        argosy.nn.padding: CircularPad1D CircularPad2D CircularPad3D ConstantPad1D ConstantPad2D ConstantPad3D
            Pad1D Pad2D Pad3D ReflectionPad1D ReflectionPad2D ReflectionPad3D ReplicationPad1D ReplicationPad2D
            ReplicationPad3D ZeroPad1D ZeroPad2D ZeroPad3D
    """,
    "argosy.nn.layer.container": """
        # Paddle's module of containers, for code that takes layers from where Paddle defines them.
        argosy.nn.container: LayerDict LayerList ParameterDict ParameterList Sequential
    """,
    "argosy.nn.layer.conv": """
        # Paddle's module of convolutions, for code that takes layers from where Paddle defines them.
        argosy.nn.conv: Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose _ConvNd
    """,
    "argosy.nn.layer.distance": """
        # Paddle's module of distances, for code that takes layers from where Paddle defines them.
        argosy.nn.geometry: PairwiseDistance
    """,
    "argosy.nn.layer.loss": """
        # Paddle's module of losses, for code that takes layers from where Paddle defines them.
        argosy.nn.adaptive_softmax: AdaptiveLogSoftmaxWithLoss
        argosy.nn.loss: BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss CTCLoss GaussianNLLLoss
            HingeEmbeddingLoss HSigmoidLoss KLDivLoss L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss
            MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss RNNTLoss SmoothL1Loss SoftMarginLoss
            TripletMarginLoss TripletMarginWithDistanceLoss
    """,
    "argosy.nn.layer.norm": """
        # Paddle's module of normalisations, for code that takes layers from where Paddle defines them.
        argosy.nn.batch_norm: BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D _BatchNormBase=_BatchNorm
            SyncBatchNorm
        argosy.nn.channel_norm: GroupNorm InstanceNorm1D InstanceNorm2D InstanceNorm3D
            _InstanceNormBase=_InstanceNorm LocalResponseNorm SpectralNorm
        argosy.nn.norm: LayerNorm
    """,
    "argosy.nn.layer.pooling": """
        # Paddle's module of pooling, for code that takes layers from where Paddle defines them.
        argosy.nn.adaptive_pooling: AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D
            AdaptiveMaxPool2D AdaptiveMaxPool3D
        argosy.nn.pooling: AvgPool1D AvgPool2D AvgPool3D LPPool1D LPPool2D MaxPool1D MaxPool2D MaxPool3D
        argosy.nn.unpooling: FractionalMaxPool2D FractionalMaxPool3D MaxUnPool1D MaxUnPool2D MaxUnPool3D
    """,
    "argosy.nn.layer.rnn": """
        # Paddle's module of recurrent layers, for code that takes layers from where Paddle defines them.
        argosy.nn.cells: GRUCell LSTMCell RNNCellBase SimpleRNNCell
        argosy.nn.recurrent: BiRNN GRU LSTM RNN SimpleRNN
    """,
    "argosy.nn.layer.transformer": """
        # Paddle's module of Transformers, for code that takes layers from where Paddle defines them.
        argosy.nn.attention: _convert_attention_mask=additive_mask MultiHeadAttention
        argosy.nn.transformer: _convert_param_attr_to_list Transformer TransformerDecoder
            TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
    """,
    "argosy.nn.layer.vision": """
        # Paddle's module of rearrangements of images, for code that takes layers from where Paddle defines
        # them.
        argosy.nn.geometry: ChannelShuffle PixelShuffle PixelUnshuffle
    """,
    "argosy.optimizer.adadelta": """
        # Where Paddle defines ``Adadelta``, for code that takes it from there.
        argosy.optimizer.adaptive: Adadelta
    """,
    "argosy.optimizer.adagrad": """
        # Where Paddle defines ``Adagrad``, for code that takes it from there.
        argosy.optimizer.adaptive: Adagrad
    """,
    "argosy.optimizer.adamax": """
        # Where Paddle defines ``Adamax``, for code that takes it from there.
        argosy.optimizer.moments: Adamax
    """,
    "argosy.optimizer.adamw": """
        # Where Paddle defines ``AdamW``, for code that takes it from there.
        argosy.optimizer.adam: AdamW
    """,
    "argosy.optimizer.lamb": """
        # Where Paddle defines ``Lamb``, for code that takes it from there.
        argosy.optimizer.moments: Lamb
    """,
    "argosy.optimizer.rmsprop": """
        # Where Paddle defines ``RMSProp``, for code that takes it from there.
        argosy.optimizer.adaptive: RMSProp
    """,
    "argosy.optimizer.sgd": """
        # Where Paddle defines ``SGD``, for code that takes it from there.
        argosy.optimizer.momentum: SGD
    """,
    "argosy.pir": """
        # What Paddle calls ``pir``: in argosy the variables of a program being recorded are tensors, too.
        argosy.runtime: Value=Tensor
        argosy.static.program: Block Program
    """,
    "argosy.quantization.base_observer": """
        # Where Paddle defines ``BaseObserver``.
        argosy.quantization.base: BaseObserver
    """,
    "argosy.quantization.base_quanter": """
        # Where Paddle defines ``BaseQuanter``.
        argosy.quantization.base: BaseQuanter
    """,
    "argosy.random": """
        # Seeds and states of the generator of random numbers.
        argosy.framework.random: get_rng_state initial_seed seed set_rng_state
    """,
    "argosy.special": """
        # Special functions: the operators that Paddle also keeps under ``paddle.special``, and those that it
        # lacks.
        argosy.compat.nn.functional: softmax
        operators: digamma erf erfinv expm1 gammainc gammaincc gammaln i0 i0e i1 i1e k0 k0e k1 k1e log1p logit
            logsumexp multigammaln polygamma round sinc zeta
    """,
    "argosy.static.nn": """
        # Layers of static programs as functions, and control flow.
        argosy.static.control_flow: case cond static_pylayer switch_case while_loop
        argosy.static.layers: batch_norm bilinear_tensor_product conv2d conv2d_transpose conv3d conv3d_transpose
            embedding fc group_norm instance_norm layer_norm prelu row_conv spectral_norm
        argosy.static.python_functions: py_func
        argosy.vision.ops.static_layers: deform_conv2d
        absent sampled-classes: nce
        absent server-table: sparse_embedding
        absent unequal-lengths: sequence_conv sequence_expand sequence_first_step sequence_last_step
            sequence_pool sequence_softmax
    """,
    "argosy.static.quantization.cal_kl_threshold": """
        # Where Paddle defines it.
        argosy.quantization.imperative.ptq_quantizer: cal_kl_threshold
    """,
    "argosy.static.quantization.utils": """
        # Helpers of Paddle's passes on older programs: names that libraries import beside what they use.
        absent quantization-pass: dequant_tensor load_variable_data quant_tensor set_variable_data
            stable_sigmoid
    """,
    "argosy.sysconfig": """
        # Where Paddle's headers and libraries lie. Both functions raise NotImplementedError: argosy has none.
        absent headers: get_include get_lib
    """,
    "argosy.utils.cpp_extension": """
        # Operators in C++ against Paddle's headers, which argosy has not. Every function raises
        # NotImplementedError.
        .: cpp_extension extension_utils
        absent cpp: CppExtension CUDAExtension get_build_directory load load_op_meta_info_and_register_op setup
        argosy.framework.other_devices: BuildExtension
    """,
    "argosy.utils.cpp_extension.cpp_extension": """
        # Extensions in C++, under their older address.
        absent cpp: CppExtension CUDAExtension load setup
        argosy.framework.other_devices: BuildExtension CUDA_HOME
    """,
    "argosy.utils.cpp_extension.extension_utils": """
        # What loads compiled operators of Paddle, under its older address. It raises NotImplementedError.
        absent cpp: _import_module_from_library _jit_compile load_op_meta_info_and_register_op
    """,
} | DISTRIBUTED_ADDRESSES

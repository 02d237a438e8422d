"""Names that libraries for one domain offer, as in `argosy.api.names`."""

__all__ = ["DOMAIN_NAMES"]

DOMAIN_NAMES = {
    "argosy.audio": """
        .: backends datasets features functional
        .backends: info load save
    """,
    "argosy.audio.datasets": """
        .esc50: ESC50
        .tess: TESS
    """,
    "argosy.distribution": """
        .: constraint kl transform variable
        .bernoulli: Bernoulli
        .beta: Beta
        .binomial: Binomial
        .categorical: Categorical
        .cauchy: Cauchy
        .chi2: Chi2
        .continuous_bernoulli: ContinuousBernoulli
        .dirichlet: Dirichlet
        .distribution: Distribution ExponentialFamily
        .divergence: kl_divergence
        .exponential: Exponential
        .gamma: Gamma
        .geometric: Geometric
        .gumbel: Gumbel
        .independent: Independent
        .kl: register_kl
        .laplace: Laplace
        .lkj_cholesky: LKJCholesky
        .lognormal: LogNormal
        .multinomial: Multinomial
        .multivariate_normal: MultivariateNormal
        .normal: Normal
        .poisson: Poisson
        .student_t: StudentT
        .transforms.base: ChainTransform Transform TransformedDistribution
        .transforms.combinators: IndependentTransform StackTransform
        .transforms.elementwise: AbsTransform AffineTransform ExpTransform PowerTransform SigmoidTransform
            TanhTransform
        .transforms.vectors: ReshapeTransform SoftmaxTransform StickBreakingTransform
        .uniform: Uniform
    """,
    "argosy.geometric": """
        .messages: segment_max segment_mean segment_min segment_sum send_u_recv send_ue_recv send_uv
        .neighbourhoods: reindex_graph reindex_heter_graph sample_neighbors weighted_sample_neighbors
    """,
    "argosy.incubate": """
        .: asp autograd autotune distributed nn optimizer tensor
        .functions: identity_loss softmax_mask_fuse softmax_mask_fuse_upper_triangle
        .graphs: graph_reindex graph_sample_neighbors graph_send_recv
        .optimizer.lookahead: LookAhead
        .optimizer.modelaverage: ModelAverage
        argosy.geometric.messages: segment_max segment_mean segment_min segment_sum
    """,
    "argosy.incubate.asp": """
        .masks: calculate_density check_mask_1d check_mask_2d check_sparsity CheckMethod create_mask get_mask_1d
            get_mask_2d_best get_mask_2d_greedy MaskAlgo
        .pruning: add_supported_layer decorate prune_model reset_excluded_layers set_excluded_layers
    """,
    "argosy.incubate.nn": """
        .: functional layer
        .linear: FusedBiasDropoutResidualLayerNorm FusedDropout FusedDropoutAdd FusedLinear
        .transformer: FusedFeedForward FusedMultiHeadAttention FusedMultiTransformer
            FusedTransformerEncoderLayer
    """,
    "argosy.incubate.nn.functional": """
        .attention: fused_dot_product_attention fused_multi_head_attention
            variable_length_memory_efficient_attention
        .linear: fused_bias_act fused_linear fused_linear_activation fused_matmul_bias
        .normalization: fast_ln fast_rms_norm fused_layer_norm fused_rms_norm fused_rms_norm_ext
        .residual: fused_bias_dropout_residual_layer_norm fused_dropout_add fused_feedforward
        .rotary: fused_rotary_position_embedding
        operators: swiglu
        absent backward-step: cross_entropy_with_softmax_bwd_w_downcast
        absent dot-product: cudnn_flash_attention
        absent embedding-gradient: embedding_grad_add_to_
        absent experts: build_src_rank_and_local_expert_id cal_aux_loss expand_modality_expert_id int_bincount
            moe_combine moe_gate_dispatch moe_gate_dispatch_and_quant moe_gate_dispatch_partial_nosoftmaxtopk
            moe_gate_dispatch_permute
        absent float8: fp8_gemm_blockwise fp8_quant_blockwise fused_act_dequant fused_stack_transpose_quant
            fused_swiglu_weighted_bwd fused_transpose_split_quant fused_transpose_wlch_split_quant
            fused_weighted_swiglu_act_quant
        absent multi-head: fused_gate_attention
        absent rotary: fused_partial_rope
        absent serving: blha_get_max_len block_multihead_attention fused_multi_transformer
            masked_multihead_attention
        absent stacked-matmul: batched_gemm
    """,
    "argosy.incubate.optimizer": """
        .: functional
        .lookahead: LookAhead
        .modelaverage: ModelAverage
        argosy.optimizer.lars: LarsMomentumOptimizer
        argosy.optimizer.lbfgs: LBFGS
    """,
    "argosy.inference": """
        .config: Config
        .kinds: DataType PlaceType PrecisionType
        .predictor: create_predictor Predictor PredictorPool Tensor
        .queries: convert_to_mixed_precision get_num_bytes_of_data_type get_trt_compile_version
            get_trt_runtime_version get_version XpuConfig
    """,
    "argosy.models": """
        .classifiers: SequenceClassifier TokenClassifier
        .configuration: ConfigFile ConfigurationError DecoderConfig
        .decoder: CausalLM Decoder
        .distillation: distillation_step hidden_loss logits_loss
        .encoder: Encoder EncoderClassifier EncoderConfig EncoderTokenClassifier MaskedLM
        .gpt: GPT GPTConfig
        .importer: export programs_of_predictions
        .language_model: LanguageModel load
        .loading: build load_model save
        .pruning: prune
        .quantized_layouts: use_integers
    """,
    "argosy.quantization": """
        .: base_observer base_quanter config factory imperative observers quanters quantize wrapper
        .base: BaseObserver BaseQuanter
        .config: QuantConfig SingleLayerConfig
        .factory: quanter
        .imperative.ptq: ImperativePTQ
        .imperative.ptq_config: default_ptq_config PTQConfig
        .imperative.ptq_quantizer: AbsmaxQuantizer BaseQuantizer HistQuantizer KLQuantizer
            PerChannelAbsmaxQuantizer SUPPORT_ACT_QUANTIZERS SUPPORT_WT_QUANTIZERS
        .imperative.ptq_registry: PTQRegistry
        .imperative.qat: ImperativeQuantAware
        .quantize: PTQ QAT
    """,
    "argosy.quantization.imperative": """
        .: fuse_utils ptq ptq_config ptq_quantizer ptq_registry qat
        .ptq: ImperativePTQ
        .ptq_config: default_ptq_config PTQConfig
        .ptq_quantizer: AbsmaxQuantizer BaseQuantizer HistQuantizer KLQuantizer PerChannelAbsmaxQuantizer
            SUPPORT_ACT_QUANTIZERS SUPPORT_WT_QUANTIZERS
        .ptq_registry: PTQRegistry
        .qat: ImperativeQuantAware
    """,
    "argosy.quantization.observers": """
        .abs_max: AbsmaxObserver AbsmaxObserverLayer
        .groupwise: GroupWiseWeightObserver GroupWiseWeightObserverLayer
        .histogram: HistObserver HistObserverLayer KLObserver KLObserverLayer
    """,
    "argosy.quantization.quanters": """
        .abs_max: FakeQuanterWithAbsMaxObserver FakeQuanterWithAbsMaxObserverLayer
        .lsq: FakeQuanterLSQ FakeQuanterLSQLayer
    """,
    "argosy.science": """
        .implicit: fixed_point linear_solve root
        .least_squares: levenberg_marquardt
        .loops: scan
        .nans: first_nan
        .ode: odeint
    """,
    "argosy.sparse": """
        .: nn
        .arrangement: reshape slice sum transpose
        .binary: add divide is_same_shape multiply subtract
        .creation: mask_as sparse_coo_tensor sparse_csr_tensor
        .principal_components: pca_lowrank
        .products: addmm masked_matmul matmul mv
        .tensors: SparseCooTensor SparseCsrTensor SparseTensor
        .unary: abs asin asinh atan atanh cast coalesce deg2rad expm1 isnan log1p neg pow rad2deg sin sinh sqrt
            square tan tanh
    """,
    "argosy.sparse.nn": """
        .: functional
        .activation: LeakyReLU ReLU ReLU6 Softmax
        .convolution: Conv2D Conv3D SubmConv2D SubmConv3D
        .normalization: BatchNorm SyncBatchNorm
        .pooling: MaxPool3D
    """,
    "argosy.sparse.nn.functional": """
        .activation: leaky_relu relu relu6 softmax
        .convolution: conv2d conv3d subm_conv2d subm_conv2d_igemm subm_conv3d subm_conv3d_igemm
        .masked_attention: attention
        .pooling: max_pool3d
    """,
    "argosy.text": """
        .: datasets
        .datasets.conll05: Conll05st
        .datasets.imdb: Imdb
        .datasets.imikolov: Imikolov
        .datasets.movielens: Movielens
        .datasets.translation: WMT14 WMT16
        .datasets.uci_housing: UCIHousing
        .viterbi: viterbi_decode ViterbiDecoder
    """,
    "argosy.text.datasets": """
        .conll05: Conll05st
        .imdb: Imdb
        .imikolov: Imikolov
        .movielens: Movielens
        .translation: WMT14 WMT16
        .uci_housing: UCIHousing
    """,
    "argosy.vision": """
        .: datasets models ops transforms
        .image: get_image_backend image_load set_image_backend
    """,
    "argosy.vision.datasets": """
        .archives: Flowers VOC2012
        .cifar: Cifar10 Cifar100
        .folder: DatasetFolder ImageFolder
        .mnist: FashionMNIST MNIST
    """,
    "argosy.vision.models": """
        .alex: AlexNet alexnet
        .densenet: DenseNet densenet121 densenet161 densenet169 densenet201 densenet264
        .inceptionv1: GoogLeNet googlenet
        .inceptionv3: inception_v3 InceptionV3
        .lenet: LeNet
        .mobilenetv1: mobilenet_v1 MobileNetV1
        .mobilenetv2: mobilenet_v2 MobileNetV2
        .mobilenetv3: mobilenet_v3_large mobilenet_v3_small MobileNetV3Large MobileNetV3Small
        .resnet: ResNet resnet101 resnet152 resnet18 resnet34 resnet50 resnext101_32x4d resnext101_64x4d
            resnext152_32x4d resnext152_64x4d resnext50_32x4d resnext50_64x4d wide_resnet101_2 wide_resnet50_2
        .shufflenetv2: shufflenet_v2_swish shufflenet_v2_x0_25 shufflenet_v2_x0_33 shufflenet_v2_x0_5
            shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 ShuffleNetV2
        .squeezenet: SqueezeNet squeezenet1_0 squeezenet1_1
        .vgg: VGG vgg11 vgg13 vgg16 vgg19
    """,
    "argosy.vision.ops": """
        .boxes: box_coder distribute_fpn_proposals nms prior_box yolo_box
        .deformable_convolution: deform_conv2d DeformConv2D
        .files: decode_jpeg read_file
        .proposals: generate_proposals matrix_nms
        .regions: psroi_pool PSRoIPool roi_align roi_pool RoIAlign RoIPool
        .yolo: yolo_loss
        argosy.vision.models.blocks: ConvNormActivation
    """,
    "argosy.vision.transforms": """
        .: functional
        .base: BaseTransform Compose
        .colour: BrightnessTransform ColorJitter ContrastTransform Grayscale HueTransform Normalize
            RandomErasing SaturationTransform ToTensor Transpose
        .functional: adjust_brightness adjust_contrast adjust_hue affine center_crop crop erase hflip normalize
            pad perspective resize rotate to_grayscale to_tensor vflip
        .geometry: CenterCrop Pad RandomAffine RandomCrop RandomHorizontalFlip RandomPerspective
            RandomResizedCrop RandomRotation RandomVerticalFlip Resize
    """,
    "argosy.vision.transforms.transforms": """
        argosy.vision.transforms.base: BaseTransform Compose
        argosy.vision.transforms.colour: BrightnessTransform ColorJitter ContrastTransform Grayscale
            HueTransform Normalize RandomErasing SaturationTransform ToTensor Transpose
        argosy.vision.transforms.geometry: CenterCrop Pad RandomAffine RandomCrop RandomHorizontalFlip
            RandomPerspective RandomResizedCrop RandomRotation RandomVerticalFlip Resize
    """,
}

"""Layers, losses, gradient clipping and initialisation: the face of ``argosy.nn``."""

from argosy.faces import face

_MODULES = {
    "layer": ("Layer",),
    "container": ("LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"),
    "common": ("Embedding", "Flatten", "Identity", "Linear"),
    "conv": ("Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"),
    "pooling": (
        "AvgPool1D", "AvgPool2D", "AvgPool3D", "LPPool1D", "LPPool2D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
    ),
    "adaptive_pooling": (
        "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
        "AdaptiveMaxPool3D",
    ),
    "norm": ("LayerNorm", "RMSNorm"),
    "batch_norm": ("BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"),
    "activation": (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
        "LogSigmoid", "LogSoftmax", "Maxout", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
        "Silu", "Softmax", "Softmax2D", "Softplus", "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink",
        "ThresholdedReLU",
    ),
    "loss": (
        "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
        "HSigmoidLoss", "HingeEmbeddingLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
        "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss",
        "RNNTLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    ),
    "dropout": ("AlphaDropout", "Dropout", "Dropout2D", "Dropout3D", "FeatureAlphaDropout"),
    "padding": (
        "CircularPad1D", "CircularPad2D", "CircularPad3D", "ConstantPad1D", "ConstantPad2D", "ConstantPad3D",
        "Pad1D", "Pad2D", "Pad3D", "ReflectionPad1D", "ReflectionPad2D", "ReflectionPad3D",
        "ReplicationPad1D", "ReplicationPad2D", "ReplicationPad3D", "ZeroPad1D", "ZeroPad2D", "ZeroPad3D",
    ),
    "geometry": (
        "Bilinear", "ChannelShuffle", "CosineSimilarity", "Fold", "PairwiseDistance", "PixelShuffle",
        "PixelUnshuffle", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D",
    ),
    "channel_norm": (
        "GroupNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D", "LocalResponseNorm",
        "SpectralNorm",
    ),
    "attention": ("MultiHeadAttention",),
    "transformer": (
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
    "cells": ("GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"),
    "decode": ("BeamSearchDecoder", "dynamic_decode"),
    "recurrent": ("GRU", "LSTM", "RNN", "BiRNN", "SimpleRNN"),
    "adaptive_softmax": ("AdaptiveLogSoftmaxWithLoss",),
    "unpooling": ("FractionalMaxPool2D", "FractionalMaxPool3D", "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D"),
    "clip": ("ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"),
}  # fmt: skip
_TABLE = {name: f"argosy.nn.{module}:{name}" for module, names in _MODULES.items() for name in names}
_FOLDERS = ("attention", "decode", "functional", "init", "initializer", "layer", "loss", "quant", "utils")
_TABLE |= {name: f"argosy.nn.{name}" for name in _FOLDERS}
_TABLE |= {"Parameter": "argosy.nn.parameter:Parameter"}

_OTHER_NAMES = {
    **{f"{kind}Pad{n}d": f"{kind}Pad{n}D" for kind in ("Constant", "Circular", "Reflection") for n in (1, 2, 3)},
    **{f"{kind}{n}d": f"{kind}{n}D" for kind in ("ReplicationPad", "Conv", "AdaptiveMaxPool") for n in (1, 2, 3)},
    **{f"LPPool{n}d": f"LPPool{n}D" for n in (1, 2)},
    "Module": "Layer", "ModuleList": "LayerList", "ModuleDict": "LayerDict",
}  # fmt: skip
"""Names in torch's manner that Paddle offers, too."""
_TABLE |= {other: _TABLE[name] for other, name in _OTHER_NAMES.items()}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

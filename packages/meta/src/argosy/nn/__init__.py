"""Layers, losses, gradient clipping and initialisation: the face of ``argosy.nn``."""

from argosy.faces import face

_MODULES = {
    "layer": ("Layer",),
    "container": ("LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"),
    "common": ("Dropout", "Embedding", "Flatten", "Identity", "Linear"),
    "conv": ("Conv1D", "Conv2D", "Conv3D"),
    "pooling": ("AdaptiveAvgPool2D", "AvgPool2D", "MaxPool2D"),
    "norm": ("LayerNorm", "RMSNorm"),
    "batch_norm": ("BatchNorm1D", "BatchNorm2D", "BatchNorm3D"),
    "activation": (
        "ELU", "GELU", "Hardswish", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "Sigmoid",
        "Silu", "SiLU", "Softmax", "Softplus", "Softsign", "Swish", "Tanh",
    ),
    "loss": ("CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss", "BCEWithLogitsLoss"),
    "clip": ("ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"),
}  # fmt: skip
_TABLE = {name: f"argosy.nn.{module}:{name}" for module, names in _MODULES.items() for name in names}
_TABLE |= {name: f"argosy.nn.{name}" for name in ("functional", "initializer")}

__getattr__, __dir__ = face(__name__, _TABLE, globals())

"""Layers of sparse tensors."""

from argosy.faces import face

_LAYERS = {
    "activation": ("LeakyReLU", "ReLU", "ReLU6", "Softmax"),
    "convolution": ("Conv2D", "Conv3D", "SubmConv2D", "SubmConv3D"),
    "normalization": ("BatchNorm", "SyncBatchNorm"),
    "pooling": ("MaxPool3D",),
}
_TABLE = {
    "functional": "argosy.sparse.nn.functional",
    **{name: f"argosy.sparse.nn.{module}:{name}" for module, names in _LAYERS.items() for name in names},
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

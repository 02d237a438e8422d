"""Activations, convolutions, pooling and attention of sparse tensors."""

from argosy.faces import face

_FUNCTIONS = {
    "activation": ("leaky_relu", "relu", "relu6", "softmax"),
    "convolution": ("conv2d", "conv3d", "subm_conv2d", "subm_conv2d_igemm", "subm_conv3d", "subm_conv3d_igemm"),
    "pooling": ("max_pool3d",),
    "masked_attention": ("attention",),
}
_TABLE = {
    name: f"argosy.sparse.nn.functional.{module}:{name}" for module, names in _FUNCTIONS.items() for name in names
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

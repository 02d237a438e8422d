"""Paddle's module of activations, for code that takes layers from where Paddle defines them."""

from argosy.nn.activation import (
    ELU,
    GELU,
    Hardswish,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    Silu,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
)
from argosy.nn.shrinkage import (
    CELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardtanh,
    Maxout,
    PReLU,
    RReLU,
    Softmax2D,
    Softshrink,
    Tanhshrink,
    ThresholdedReLU,
)

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Maxout", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "Sigmoid", "Silu",
    "Softmax", "Softmax2D", "Softplus", "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink",
    "ThresholdedReLU",
]  # fmt: skip

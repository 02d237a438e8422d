"""Written by ``python -m argosy.api.stubs``."""

from argosy.sparse.nn.normalization import BatchNorm as BatchNorm
from argosy.sparse.nn.convolution import Conv2D as Conv2D
from argosy.sparse.nn.convolution import Conv3D as Conv3D
from argosy.sparse.nn.activation import LeakyReLU as LeakyReLU
from argosy.sparse.nn.pooling import MaxPool3D as MaxPool3D
from argosy.sparse.nn.activation import ReLU as ReLU
from argosy.sparse.nn.activation import ReLU6 as ReLU6
from argosy.sparse.nn.activation import Softmax as Softmax
from argosy.sparse.nn.convolution import SubmConv2D as SubmConv2D
from argosy.sparse.nn.convolution import SubmConv3D as SubmConv3D
from argosy.sparse.nn.normalization import SyncBatchNorm as SyncBatchNorm
from argosy.sparse.nn import functional as functional

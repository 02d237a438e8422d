"""Written by ``python -m argosy.api.stubs``."""

from argosy.sparse.nn.functional.masked_attention import attention as attention
from argosy.sparse.nn.functional.convolution import conv2d as conv2d
from argosy.sparse.nn.functional.convolution import conv3d as conv3d
from argosy.sparse.nn.functional.activation import leaky_relu as leaky_relu
from argosy.sparse.nn.functional.pooling import max_pool3d as max_pool3d
from argosy.sparse.nn.functional.activation import relu as relu
from argosy.sparse.nn.functional.activation import relu6 as relu6
from argosy.sparse.nn.functional.activation import softmax as softmax
from argosy.sparse.nn.functional.convolution import subm_conv2d as subm_conv2d
from argosy.sparse.nn.functional.convolution import subm_conv2d as _own_subm_conv2d_igemm
from argosy.sparse.nn.functional.convolution import subm_conv3d as subm_conv3d
from argosy.sparse.nn.functional.convolution import subm_conv3d as _own_subm_conv3d_igemm
subm_conv2d_igemm = _own_subm_conv2d_igemm
subm_conv3d_igemm = _own_subm_conv3d_igemm

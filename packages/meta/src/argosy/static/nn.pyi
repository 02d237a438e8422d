"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.static.layers import batch_norm as batch_norm
from argosy.static.layers import bilinear_tensor_product as bilinear_tensor_product
from argosy.static.control_flow import case as case
from argosy.static.control_flow import cond as cond
from argosy.static.layers import conv2d as conv2d
from argosy.static.layers import conv2d_transpose as conv2d_transpose
from argosy.static.layers import conv3d as conv3d
from argosy.static.layers import conv3d_transpose as conv3d_transpose
from argosy.vision.ops.static_layers import deform_conv2d as deform_conv2d
from argosy.static.layers import embedding as embedding
from argosy.static.layers import fc as fc
from argosy.static.layers import group_norm as group_norm
from argosy.static.layers import instance_norm as instance_norm
from argosy.static.layers import layer_norm as layer_norm
from argosy.static.layers import prelu as prelu
from argosy.static.python_functions import py_func as py_func
from argosy.static.layers import row_conv as row_conv
from argosy.static.layers import spectral_norm as spectral_norm
from argosy.static.control_flow import static_pylayer as static_pylayer
from argosy.static.control_flow import switch_case as switch_case
from argosy.static.control_flow import while_loop as while_loop
def nce(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_conv(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_expand(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_first_step(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_last_step(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_pool(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sequence_softmax(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def sparse_embedding(*args: _Any, **kwargs: _Any) -> _NoReturn: ...

"""Written by ``python -m argosy.api.stubs``."""

from argosy.compat.nn.layers import AvgPool1D as AvgPool1D
from argosy.compat.nn.layers import AvgPool1D as _own_AvgPool1d
from argosy.compat.nn.layers import AvgPool2D as AvgPool2D
from argosy.compat.nn.layers import AvgPool2D as _own_AvgPool2d
from argosy.compat.nn.layers import AvgPool3D as AvgPool3D
from argosy.compat.nn.layers import AvgPool3D as _own_AvgPool3d
from argosy.compat.nn.layers import Linear as Linear
from argosy.compat.nn.attention import MultiheadAttention as MultiheadAttention
from argosy.compat.nn.layers import Softmax as Softmax
from argosy.compat.nn.layers import Unfold as Unfold
from argosy.compat.nn import functional as functional
AvgPool1d = _own_AvgPool1d
AvgPool2d = _own_AvgPool2d
AvgPool3d = _own_AvgPool3d

"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.adaptive_pooling import AdaptiveAvgPool1D as AdaptiveAvgPool1D
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D as AdaptiveAvgPool2D
from argosy.nn.adaptive_pooling import AdaptiveAvgPool3D as AdaptiveAvgPool3D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool1D as AdaptiveMaxPool1D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool2D as AdaptiveMaxPool2D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool3D as AdaptiveMaxPool3D
from argosy.nn.pooling import AvgPool1D as AvgPool1D
from argosy.nn.pooling import AvgPool2D as AvgPool2D
from argosy.nn.pooling import AvgPool3D as AvgPool3D
from argosy.nn.unpooling import FractionalMaxPool2D as FractionalMaxPool2D
from argosy.nn.unpooling import FractionalMaxPool3D as FractionalMaxPool3D
from argosy.nn.pooling import LPPool1D as LPPool1D
from argosy.nn.pooling import LPPool2D as LPPool2D
from argosy.nn.pooling import MaxPool1D as MaxPool1D
from argosy.nn.pooling import MaxPool2D as MaxPool2D
from argosy.nn.pooling import MaxPool3D as MaxPool3D
from argosy.nn.unpooling import MaxUnPool1D as MaxUnPool1D
from argosy.nn.unpooling import MaxUnPool2D as MaxUnPool2D
from argosy.nn.unpooling import MaxUnPool3D as MaxUnPool3D

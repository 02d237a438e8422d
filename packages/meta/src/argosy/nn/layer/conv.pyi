"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.conv import Conv1D as Conv1D
from argosy.nn.conv import Conv1DTranspose as Conv1DTranspose
from argosy.nn.conv import Conv2D as Conv2D
from argosy.nn.conv import Conv2DTranspose as Conv2DTranspose
from argosy.nn.conv import Conv3D as Conv3D
from argosy.nn.conv import Conv3DTranspose as Conv3DTranspose
from argosy.nn.conv import _ConvNd as _ConvNd

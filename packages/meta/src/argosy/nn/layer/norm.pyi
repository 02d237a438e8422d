"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.batch_norm import BatchNorm as BatchNorm
from argosy.nn.batch_norm import BatchNorm1D as BatchNorm1D
from argosy.nn.batch_norm import BatchNorm2D as BatchNorm2D
from argosy.nn.batch_norm import BatchNorm3D as BatchNorm3D
from argosy.nn.channel_norm import GroupNorm as GroupNorm
from argosy.nn.channel_norm import InstanceNorm1D as InstanceNorm1D
from argosy.nn.channel_norm import InstanceNorm2D as InstanceNorm2D
from argosy.nn.channel_norm import InstanceNorm3D as InstanceNorm3D
from argosy.nn.norm import LayerNorm as LayerNorm
from argosy.nn.channel_norm import LocalResponseNorm as LocalResponseNorm
from argosy.nn.channel_norm import SpectralNorm as SpectralNorm
from argosy.nn.batch_norm import SyncBatchNorm as SyncBatchNorm
from argosy.nn.batch_norm import _BatchNorm as _own__BatchNormBase
from argosy.nn.channel_norm import _InstanceNorm as _own__InstanceNormBase
_BatchNormBase = _own__BatchNormBase
_InstanceNormBase = _own__InstanceNormBase

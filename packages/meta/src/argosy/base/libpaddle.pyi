"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.core import AmpLevel as AmpLevel
from argosy.device.places import CPUPlace as CPUPlace
from argosy_tensorcore.dtype import DType as _own_DataType
from argosy.framework.core import DenseTensor as DenseTensor
from argosy_tensorcore.rng import Generator as Generator
from argosy.framework.core import LoDTensor as LoDTensor
from argosy_tensorcore.place import Place as Place
from argosy import pir as pir
DataType = _own_DataType

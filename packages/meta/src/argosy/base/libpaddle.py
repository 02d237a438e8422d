"""What libraries take from Paddle's extension module itself."""

from argosy import pir
from argosy.framework.core import AmpLevel, CPUPlace, DataType, DenseTensor, Generator, LoDTensor, Place

__all__ = ["AmpLevel", "CPUPlace", "DataType", "DenseTensor", "Generator", "LoDTensor", "Place", "pir"]

"""Dtypes, strided storage, Tensor, interchange, safetensors and the counter-based RNG of argosy."""

from argosy_tensorcore.__about__ import __version__
from argosy_tensorcore.conversion import DataError, NotScalarError
from argosy_tensorcore.dtype import DType, as_dtype, default_dtype, finfo, iinfo, set_default_dtype
from argosy_tensorcore.interchange import from_dlpack, from_numpy, to_numpy
from argosy_tensorcore.naming import UniqueNames, set_name_source
from argosy_tensorcore.place import Place, as_place
from argosy_tensorcore.shape import Size
from argosy_tensorcore.storage import Storage, StridedArray
from argosy_tensorcore.tensor import Parameter, Tensor, set_method_resolver

__all__ = [
    "DType",
    "DataError",
    "NotScalarError",
    "Parameter",
    "Place",
    "Size",
    "Storage",
    "StridedArray",
    "Tensor",
    "UniqueNames",
    "__version__",
    "as_dtype",
    "as_place",
    "default_dtype",
    "finfo",
    "from_dlpack",
    "from_numpy",
    "iinfo",
    "set_default_dtype",
    "set_method_resolver",
    "set_name_source",
    "to_numpy",
]

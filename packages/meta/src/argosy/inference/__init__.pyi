"""Written by ``python -m argosy.api.stubs``."""

from argosy.inference.config import Config as Config
from argosy.inference.kinds import DataType as DataType
from argosy.inference.kinds import PlaceType as PlaceType
from argosy.inference.kinds import PrecisionType as PrecisionType
from argosy.inference.predictor import Predictor as Predictor
from argosy.inference.predictor import PredictorPool as PredictorPool
from argosy.inference.predictor import Tensor as Tensor
from argosy.inference.queries import XpuConfig as XpuConfig
from argosy.inference.queries import convert_to_mixed_precision as convert_to_mixed_precision
from argosy.inference.predictor import create_predictor as create_predictor
from argosy.inference.queries import get_num_bytes_of_data_type as get_num_bytes_of_data_type
from argosy.inference.queries import get_trt_compile_version as get_trt_compile_version
from argosy.inference.queries import get_trt_runtime_version as get_trt_runtime_version
from argosy.inference.queries import get_version as get_version

"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.typed_creation import BFloat16Tensor as BFloat16Tensor
from argosy.framework.typed_creation import BoolTensor as BoolTensor
from argosy.framework.typed_creation import ByteTensor as ByteTensor
from argosy.framework.typed_creation import CharTensor as CharTensor
from argosy.framework.typed_creation import DoubleTensor as DoubleTensor
from argosy.device.streams import Event as Event
from argosy.framework.typed_creation import FloatTensor as FloatTensor
from argosy.framework.typed_creation import HalfTensor as HalfTensor
from argosy.framework.typed_creation import IntTensor as IntTensor
from argosy.framework.typed_creation import LongTensor as LongTensor
from argosy.framework.typed_creation import ShortTensor as ShortTensor
from argosy.device.streams import Stream as Stream
from argosy.device.streams import stream_guard as _own_StreamContext
from argosy.device.cuda_runtime import check_error as check_error
from argosy.device.cuda_runtime import cudart as cudart
from argosy.device.cuda_runtime import current_device as current_device
from argosy.device.streams import current_stream as current_stream
from argosy.device.queries import device_guard as _own_device
from argosy.device.queries import device_count as device_count
from argosy.device.queries import empty_cache as empty_cache
from argosy.device.streams import get_device_capability as get_device_capability
from argosy.device.streams import get_device_name as get_device_name
from argosy.device.streams import get_device_properties as get_device_properties
from argosy.device.tensor_types import get_rng_state as get_rng_state
from argosy.device.streams import get_stream_from_external as get_stream_from_external
from argosy.device.streams import ipc_collect as ipc_collect
from argosy.device.queries import is_available as is_available
from argosy.device.queries import is_bf16_supported as is_bf16_supported
from argosy.device.streams import is_current_stream_capturing as is_current_stream_capturing
from argosy.device.cuda_runtime import is_initialized as is_initialized
from argosy.device.tensor_types import manual_seed as manual_seed
from argosy.device.tensor_types import manual_seed as _own_manual_seed_all
from argosy.device.streams import max_memory_allocated as max_memory_allocated
from argosy.device.streams import max_memory_reserved as max_memory_reserved
from argosy.device.cuda_runtime import mem_get_info as mem_get_info
from argosy.device.streams import memory_allocated as memory_allocated
from argosy.device.streams import memory_reserved as memory_reserved
from argosy.device.streams import reset_max_memory_allocated as reset_max_memory_allocated
from argosy.device.streams import reset_max_memory_reserved as reset_max_memory_reserved
from argosy.device.streams import reset_peak_memory_stats as reset_peak_memory_stats
from argosy.device.places import set_device as set_device
from argosy.device.tensor_types import set_rng_state as set_rng_state
from argosy.device.streams import set_stream as set_stream
from argosy.device.streams import stream_guard as _own_stream
from argosy.device.queries import synchronize as synchronize
StreamContext = _own_StreamContext
device = _own_device
manual_seed_all = _own_manual_seed_all
stream = _own_stream

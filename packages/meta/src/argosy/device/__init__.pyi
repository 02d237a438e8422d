"""Written by ``python -m argosy.stubs``."""

from argosy.device.places import CPUPlace as CPUPlace
from argosy.device import cuda as cuda
from argosy.device.queries import device_count as device_count
from argosy.device.queries import device_guard as device_guard
from argosy.device.queries import get_all_custom_device_type as get_all_custom_device_type
from argosy.device.queries import get_all_device_type as get_all_device_type
from argosy.device.queries import get_available_custom_device as get_available_custom_device
from argosy.device.places import get_available_device as get_available_device
from argosy.device.queries import get_cudnn_version as get_cudnn_version
from argosy.device.places import get_device as get_device
from argosy.device.queries import is_available as is_available
from argosy.device.places import is_compiled_with_cinn as is_compiled_with_cinn
from argosy.device.places import is_compiled_with_cuda as is_compiled_with_cuda
from argosy.device.places import is_compiled_with_custom_device as is_compiled_with_custom_device
from argosy.device.places import is_compiled_with_distribute as is_compiled_with_distribute
from argosy.device.places import is_compiled_with_ipu as is_compiled_with_ipu
from argosy.device.places import is_compiled_with_rocm as is_compiled_with_rocm
from argosy.device.places import is_compiled_with_xpu as is_compiled_with_xpu
from argosy.device.places import set_device as set_device
from argosy.device.queries import synchronize as synchronize

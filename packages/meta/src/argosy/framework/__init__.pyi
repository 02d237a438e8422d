"""Written by ``python -m argosy.stubs``."""

from argosy.device.places import CPUPlace as CPUPlace
from argosy.framework.other_devices import CUDAPinnedPlace as CUDAPinnedPlace
from argosy.framework.other_devices import CUDAPlace as CUDAPlace
from argosy.framework.reading import MmapStorage as MmapStorage
from argosy.attributes import ParamAttr as ParamAttr
from argosy.nn.parameter import Parameter as Parameter
from argosy.static.program import Program as Program
from argosy.framework.other_devices import XPUPinnedPlace as XPUPinnedPlace
from argosy.framework.reading import batch as batch
from argosy.framework.reading import check_shape as check_shape
from argosy.framework import core as core
from argosy.framework.other_devices import disable_signal_handler as disable_signal_handler
from argosy.modes import disable_static as disable_static
from argosy_tensorcore.dtype import DType as _own_dtype
from argosy.modes import enable_static as enable_static
from argosy.framework.other_devices import fp8_fp8_half_gemm_fused as fp8_fp8_half_gemm_fused
from argosy.framework.other_devices import get_cuda_rng_state as get_cuda_rng_state
from argosy.dtypes import get_default_dtype as get_default_dtype
from argosy.framework.flags import get_flags as get_flags
from argosy_autograd.engine import grad as grad
from argosy.modes import in_dynamic_mode as in_dynamic_mode
from argosy.modes import in_dynamic_or_pir_mode as in_dynamic_or_pir_mode
from argosy.framework import io as io
from argosy.serialization import load as load
from argosy_autograd.modes import no_grad as no_grad
from argosy import random as random
from argosy.serialization import save as save
from argosy.random import seed as seed
from argosy.framework.other_devices import set_cuda_rng_state as set_cuda_rng_state
from argosy.dtypes import set_default_dtype as set_default_dtype
from argosy.framework.flags import set_flags as set_flags
from argosy.modes import use_pir_api as use_pir_api
dtype = _own_dtype

"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.static.program import Block as Block
from argosy.device.places import CPUPlace as CPUPlace
from argosy.framework.other_devices import CUDAPinnedPlace as CUDAPinnedPlace
from argosy.framework.other_devices import CUDAPlace as CUDAPlace
from argosy.framework.layer_helper import LayerHelper as LayerHelper
from argosy.framework.readers import MmapStorage as MmapStorage
from argosy.framework.param_attr import ParamAttr as ParamAttr
from argosy.nn.parameter import Parameter as Parameter
from argosy.static.program import Program as Program
from argosy.framework.other_devices import XPUPinnedPlace as XPUPinnedPlace
from argosy.framework.asynchronous_saving import async_save as async_save
from argosy import base as base
from argosy.framework.readers import batch as batch
from argosy.framework.readers import check_shape as check_shape
from argosy_tensorcore.dtype import as_dtype as _own_convert_np_dtype_to_dtype_
from argosy.framework import core as core
from argosy.framework.other_devices import disable_signal_handler as disable_signal_handler
from argosy.framework.modes import disable_static as disable_static
from argosy_tensorcore.dtype import DType as _own_dtype
from argosy.framework.mode_restrictions import dygraph_not_support as dygraph_not_support
from argosy.framework.mode_restrictions import dygraph_only as dygraph_only
from argosy.framework.modes import enable_static as enable_static
from argosy.framework.other_devices import fp8_fp8_half_gemm_fused as fp8_fp8_half_gemm_fused
from argosy.framework.other_devices import get_cuda_rng_state as get_cuda_rng_state
from argosy.framework.default_dtype import get_default_dtype as get_default_dtype
from argosy.framework.flags import get_flags as get_flags
from argosy_autograd.engine import grad as grad
from argosy.framework.modes import in_dynamic_mode as in_dynamic_mode
from argosy.framework.modes import in_dynamic_or_pir_mode as in_dynamic_or_pir_mode
from argosy.framework.modes import in_pir_mode as in_pir_mode
from argosy.framework import io as io
from argosy.framework.serialization import load as load
from argosy_autograd.modes import no_grad as no_grad
from argosy.framework import random as random
from argosy.framework import recall_error as recall_error
from argosy.framework.serialization import save as save
from argosy.framework.random import seed as seed
from argosy.framework.other_devices import set_cuda_rng_state as set_cuda_rng_state
from argosy.framework.default_dtype import set_default_dtype as set_default_dtype
from argosy.framework.flags import set_flags as set_flags
from argosy.framework.modes import use_pir_api as use_pir_api
convert_np_dtype_to_dtype_ = _own_convert_np_dtype_to_dtype_
dtype = _own_dtype
def IrGraph(*args: _Any, **kwargs: _Any) -> _NoReturn: ...

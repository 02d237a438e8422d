"""Written by ``python -m argosy.api.stubs``."""

from argosy.device.places import CPUPlace as CPUPlace
from argosy.framework.other_devices import CUDAPinnedPlace as CUDAPinnedPlace
from argosy.framework.other_devices import CUDAPlace as CUDAPlace
from argosy.static.executor import Executor as Executor
from argosy.framework.param_attr import ParamAttr as ParamAttr
from argosy.static.program import Program as Program
from argosy.runtime import Tensor as _own_Variable
from argosy.base import core as core
from argosy.base import data_feeder as data_feeder
from argosy.static.program import default_main_program as default_main_program
from argosy.static.program import default_startup_program as default_startup_program
from argosy.static.program import device_guard as device_guard
from argosy.base import dygraph as dygraph
from argosy.base import framework as framework
from argosy.framework.flags import get_flags as get_flags
from argosy.static.scope import global_scope as global_scope
from argosy.framework.modes import in_dynamic_mode as _own_in_dygraph_mode
from argosy.framework.modes import in_pir_mode as in_pir_mode
from argosy.device.places import is_compiled_with_cinn as is_compiled_with_cinn
from argosy.device.places import is_compiled_with_cuda as is_compiled_with_cuda
from argosy.device.places import is_compiled_with_rocm as is_compiled_with_rocm
from argosy.device.places import is_compiled_with_xpu as is_compiled_with_xpu
from argosy.base import layer_helper as layer_helper
from argosy.base import libpaddle as libpaddle
from argosy.static.program import name_scope as name_scope
from argosy.static.program import program_guard as program_guard
from argosy.static.scope import scope_guard as scope_guard
from argosy.framework.flags import set_flags as set_flags
from argosy.utils import unique_name as unique_name
Variable = _own_Variable
in_dygraph_mode = _own_in_dygraph_mode

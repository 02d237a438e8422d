"""Written by ``python -m argosy.api.stubs``."""

from argosy.static.program import Block as Block
from argosy.nn.parameter import Parameter as _own_EagerParamBase
from argosy.nn.parameter import Parameter as Parameter
from argosy.static.program import Program as Program
from argosy.runtime import Tensor as _own_Variable
from argosy.framework.dygraph import create_tensor as _own__create_tensor
from argosy.device.places import expected_place as _own__current_expected_place
from argosy.device.places import expected_place as _own__current_expected_place_
from argosy.framework.mode_restrictions import tracer as _own__dygraph_tracer
from argosy.device.places import as_optional_place as _own__get_paddle_place
from argosy.device.places import set_device as _own__set_expected_place
from argosy.framework.mode_restrictions import no_check_of_views as _own__stride_in_no_check_dy2st_diff
from argosy_tensorcore.dtype import as_dtype as _own_convert_np_dtype_to_dtype_
from argosy.base import core as core
from argosy.static.places import cpu_places as cpu_places
from argosy.static.program import default_main_program as default_main_program
from argosy.static.program import default_startup_program as default_startup_program
from argosy.static.program import device_guard as device_guard
from argosy.framework.other_devices import disable_signal_handler as disable_signal_handler
from argosy.framework.mode_restrictions import dygraph_not_support as dygraph_not_support
from argosy.framework.mode_restrictions import dygraph_only as dygraph_only
from argosy.framework.mode_restrictions import fake_interface_only as fake_interface_only
from argosy.framework.flags import get_flags as get_flags
from argosy.framework.modes import in_dynamic_mode as _own_in_dygraph_mode
from argosy.framework.modes import in_dynamic_mode as in_dynamic_mode
from argosy.framework.modes import in_dynamic_or_pir_mode as in_dynamic_or_pir_mode
from argosy.framework.modes import in_pir_mode as in_pir_mode
from argosy.device.places import is_compiled_with_cinn as is_compiled_with_cinn
from argosy.device.places import is_compiled_with_cuda as is_compiled_with_cuda
from argosy.device.places import is_compiled_with_distribute as is_compiled_with_distribute
from argosy.device.places import is_compiled_with_rocm as is_compiled_with_rocm
from argosy.device.places import is_compiled_with_xpu as is_compiled_with_xpu
from argosy.static.program import name_scope as name_scope
from argosy.framework.mode_restrictions import non_static_only as non_static_only
from argosy.static.program import program_guard as program_guard
from argosy.framework.flags import set_flags as set_flags
from argosy.framework.mode_restrictions import static_only as static_only
from argosy.utils import unique_name as unique_name
from argosy.framework.modes import use_pir_api as use_pir_api
EagerParamBase = _own_EagerParamBase
Variable = _own_Variable
_create_tensor = _own__create_tensor
_current_expected_place = _own__current_expected_place
_current_expected_place_ = _own__current_expected_place_
_dygraph_tracer = _own__dygraph_tracer
_get_paddle_place = _own__get_paddle_place
_set_expected_place = _own__set_expected_place
_stride_in_no_check_dy2st_diff = _own__stride_in_no_check_dy2st_diff
convert_np_dtype_to_dtype_ = _own_convert_np_dtype_to_dtype_
in_dygraph_mode = _own_in_dygraph_mode

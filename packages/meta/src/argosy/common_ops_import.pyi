"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.layer_helper import LayerHelper as LayerHelper
from argosy.framework.layer_helper import Variable as Variable
from argosy.framework.layer_helper import check_dtype as check_dtype
from argosy.framework.layer_helper import check_type as check_type
from argosy.framework.layer_helper import check_variable_and_dtype as check_variable_and_dtype
from argosy.framework.layer_helper import convert_dtype as convert_dtype
from argosy_tensorcore.dtype import as_dtype as _own_convert_np_dtype_to_dtype_
from argosy.static.program import default_main_program as default_main_program
from argosy.static.program import device_guard as device_guard
from argosy.framework.modes import in_dynamic_mode as _own_in_dygraph_mode
convert_np_dtype_to_dtype_ = _own_convert_np_dtype_to_dtype_
in_dygraph_mode = _own_in_dygraph_mode

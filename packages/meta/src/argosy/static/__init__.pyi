"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.static.executor import BuildStrategy as BuildStrategy
from argosy.static.executor import CompiledProgram as CompiledProgram
from argosy.static.executor import Executor as Executor
from argosy.static.statistics import ExponentialMovingAverage as ExponentialMovingAverage
from argosy.jit.input_spec import InputSpec as InputSpec
from argosy.static.python_functions import Print as Print
from argosy.static.program import Program as Program
from argosy.static.scope import Scope as Scope
from argosy.runtime import Tensor as _own_Variable
from argosy.static.python_functions import WeightNormParamAttr as WeightNormParamAttr
from argosy.static.statistics import accuracy as accuracy
from argosy.static import amp as amp
from argosy.static.differentiation import append_backward as append_backward
from argosy.static.statistics import auc as auc
from argosy.static.places import cpu_places as cpu_places
from argosy.static.statistics import create_global_var as create_global_var
from argosy.framework.creation import create_parameter as create_parameter
from argosy.static.places import cuda_places as cuda_places
from argosy.static.program import data as data
from argosy.static.program import default_main_program as default_main_program
from argosy.static.program import default_startup_program as default_startup_program
from argosy.static.files import deserialize_persistables as deserialize_persistables
from argosy.static.files import deserialize_program as deserialize_program
from argosy.static.program import device_guard as device_guard
from argosy.static.scope import global_scope as global_scope
from argosy.static.differentiation import gradients as gradients
from argosy.static.files import load as load
from argosy.static.files import load_from_file as load_from_file
from argosy.static.files import load_inference_model as load_inference_model
from argosy.static.files import load_program_state as load_program_state
from argosy.static.program import name_scope as name_scope
from argosy.static import nn as nn
from argosy.static.files import normalize_program as normalize_program
from argosy.static.program import program_guard as program_guard
from argosy.static.python_functions import py_func as py_func
from argosy.static import quantization as quantization
from argosy.static.files import save as save
from argosy.static.files import save_inference_model as save_inference_model
from argosy.static.files import save_to_file as save_to_file
from argosy.static.scope import scope_guard as scope_guard
from argosy.static.files import serialize_persistables as serialize_persistables
from argosy.static.files import serialize_program as serialize_program
from argosy.static.files import set_program_state as set_program_state
from argosy.static.places import xpu_places as xpu_places
Variable = _own_Variable
def IpuCompiledProgram(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def IpuStrategy(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def ctr_metric_bundle(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def ipu_shard_guard(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def set_ipu_shard(*args: _Any, **kwargs: _Any) -> _NoReturn: ...

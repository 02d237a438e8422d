"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.parameter import Parameter as _own_EagerParamBase
from argosy.framework.serialization import load as load
from argosy.framework.serialization import save as save
EagerParamBase = _own_EagerParamBase

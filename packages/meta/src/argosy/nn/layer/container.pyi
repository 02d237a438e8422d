"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.container import LayerDict as LayerDict
from argosy.nn.container import LayerList as LayerList
from argosy.nn.container import ParameterDict as ParameterDict
from argosy.nn.container import ParameterList as ParameterList
from argosy.nn.container import Sequential as Sequential

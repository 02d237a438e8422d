"""Written by ``python -m argosy.stubs``."""

from argosy.jit.input_spec import InputSpec as InputSpec
from argosy.creation import create_parameter as create_parameter
from argosy.static import nn as nn

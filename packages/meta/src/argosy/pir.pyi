"""Written by ``python -m argosy.api.stubs``."""

from argosy.static.program import Block as Block
from argosy.static.program import Program as Program
from argosy.runtime import Tensor as _own_Value
Value = _own_Value

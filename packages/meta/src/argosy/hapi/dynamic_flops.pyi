"""Written by ``python -m argosy.api.stubs``."""

from argosy.hapi.operations import flops as _own_dynamic_flops
from argosy.hapi.operations import flops as flops
dynamic_flops = _own_dynamic_flops

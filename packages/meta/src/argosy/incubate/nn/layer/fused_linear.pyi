"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.nn.linear import FusedLinear as FusedLinear

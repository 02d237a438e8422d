"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.nn.linear import FusedDropoutAdd as FusedDropoutAdd

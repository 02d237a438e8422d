"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.nn.layer import fused_dropout_add as fused_dropout_add
from argosy.incubate.nn.layer import fused_linear as fused_linear
from argosy.incubate.nn.layer import fused_transformer as fused_transformer

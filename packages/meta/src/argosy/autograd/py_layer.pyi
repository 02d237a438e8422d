"""Written by ``python -m argosy.api.stubs``."""

from argosy_autograd.pylayer import PyLayer as PyLayer
from argosy_autograd.pylayer import PyLayerContext as PyLayerContext

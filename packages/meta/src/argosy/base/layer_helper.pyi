"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.layer_helper import LayerHelper as LayerHelper

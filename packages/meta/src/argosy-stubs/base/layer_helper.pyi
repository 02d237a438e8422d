"""Written by ``python -m argosy.api.stubs``."""

from argosy.common_ops_import import LayerHelper as LayerHelper

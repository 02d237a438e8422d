"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.base import BaseQuanter as BaseQuanter

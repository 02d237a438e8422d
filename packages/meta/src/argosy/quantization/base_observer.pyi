"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.base import BaseObserver as BaseObserver

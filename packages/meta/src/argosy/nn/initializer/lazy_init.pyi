"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.lazy import LazyGuard as LazyGuard

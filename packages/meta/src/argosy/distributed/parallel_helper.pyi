"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.environment import is_initialized as _own__is_parallel_ctx_initialized
_is_parallel_ctx_initialized = _own__is_parallel_ctx_initialized

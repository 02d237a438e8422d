"""Written by ``python -m argosy.api.stubs``."""

from argosy.static.executor import Executor as Executor
from argosy.static.scope import global_scope as global_scope
from argosy.static.scope import scope_guard as scope_guard

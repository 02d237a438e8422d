"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.group import Group as Group
from argosy.distributed.group import world_group as _own__get_global_group
from argosy.distributed.group import destroy_process_group as destroy_process_group
from argosy.distributed.group import get_backend as get_backend
from argosy.distributed.group import get_group as get_group
from argosy.distributed.environment import is_initialized as is_initialized
_get_global_group = _own__get_global_group

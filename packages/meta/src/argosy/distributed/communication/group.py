"""Where Paddle has groups, for code that takes them from there."""

from argosy.distributed.group import Group, destroy_process_group, get_backend, get_group
from argosy.distributed.group import world_group as _get_global_group

__all__ = ["Group", "_get_global_group", "destroy_process_group", "get_backend", "get_group"]

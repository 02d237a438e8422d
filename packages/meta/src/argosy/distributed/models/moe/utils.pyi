"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.expert_routing import assign_pos as _own__assign_pos
from argosy.distributed.expert_routing import limit_by_capacity as _own__limit_by_capacity
from argosy.distributed.expert_routing import number_count as _own__number_count
from argosy.distributed.expert_routing import prune_gate_by_capacity as _own__prune_gate_by_capacity
from argosy.distributed.expert_routing import random_routing as _own__random_routing
_assign_pos = _own__assign_pos
_limit_by_capacity = _own__limit_by_capacity
_number_count = _own__number_count
_prune_gate_by_capacity = _own__prune_gate_by_capacity
_random_routing = _own__random_routing

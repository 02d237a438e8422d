"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.expert_routing import global_gather as global_gather
from argosy.distributed.expert_routing import global_scatter as global_scatter
from argosy.distributed.utils import moe_utils as moe_utils

"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.training import fused_allreduce_gradients as fused_allreduce_gradients
from argosy.distributed.fleet.training import fused_allreduce_gradients_with_group as fused_allreduce_gradients_with_group
from argosy.distributed.fleet.training import obtain_optimizer_parameters_list as obtain_optimizer_parameters_list
from argosy.distributed.fleet.training import unwrap_optimizer as unwrap_optimizer

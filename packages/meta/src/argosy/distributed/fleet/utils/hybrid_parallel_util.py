"""Where Paddle has ``fused_allreduce_gradients`` and the parameters of an optimizer."""

from argosy.distributed.fleet.training import fused_allreduce_gradients, obtain_optimizer_parameters_list

__all__ = ["fused_allreduce_gradients", "obtain_optimizer_parameters_list"]

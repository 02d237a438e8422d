"""Deep gradient compression: copies exchange the largest entries of their gradients (Lin et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from argosy.distributed.buffers import read_values
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import average_gradients
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import WrappedOptimizer
from argosy.distributed.group import Group
from argosy.nn.clip import ClipGradByNorm
from argosy.optimizer.momentum import Momentum
from argosy_tensorcore.tensor import Tensor

__all__ = ["DGCOptimizer"]

_LEAST = 16384
"""Smaller parameters are not worth it."""


class DGCOptimizer(WrappedOptimizer):
    """Momentum whose gradients travel in part. From step ``rampup_begin_step`` on each rank adds its gradients of a
    parameter of 16,384 elements or more to a velocity ``u = momentum * u + g`` and that to a sum ``v``; of ``v`` the
    share ``1 - sparsity`` that is largest goes to the others and leaves ``u`` and ``v``, and the mean of what came is
    what parameters move by. ``sparsity`` grows through its list within ``rampup_step`` steps. Others are averaged.
    A ``ClipGradByNorm`` clips the gradients that a rank adds up to its norm divided by the root of the number of ranks,
    the others' means to its norm; TypeError for another one.
    """

    def __init__(
        self, optimizer: Any, copies: Group, rampup_begin_step: int, rampup_step: int, sparsity: Sequence[float]
    ) -> None:
        if not isinstance(optimizer, Momentum):
            raise TypeError(
                f"DistributedStrategy.dgc compresses gradients for Momentum, not {type(optimizer).__name__}"
            )
        if not isinstance(optimizer._grad_clip, ClipGradByNorm | None):
            raise TypeError(
                f"DistributedStrategy.dgc clips by ClipGradByNorm, not {type(optimizer._grad_clip).__name__}: what a "
                "rank adds up is clipped before others see it"
            )
        if not sparsity or not all(0 <= share < 1 for share in sparsity):
            raise ValueError(f"DistributedStrategy.dgc_configs: sparsity is a list from [0, 1), not {sparsity!r}")
        super().__init__(optimizer)
        self._copies, self._begin, self._sparsity, self._steps = copies, rampup_begin_step, list(sparsity), 0
        self._each = max(1, rampup_step) / len(sparsity)

    def step(self) -> None:
        """Update. Raises NotImplementedError in a captured step."""
        if is_capturing():
            raise NotImplementedError("DistributedStrategy.dgc in a captured step is not implemented")
        inner = self._inner_opt
        parameters = [p for p in inner._parameter_list if not p.stop_gradient and p.grad is not None]
        behind = self._steps - self._begin
        self._steps += 1
        large = [p for p in parameters if behind >= 0 and p.size >= _LEAST and p.dtype.name == "float32"]
        chosen = {id(p) for p in large}
        small = [p for p in parameters if id(p) not in chosen]
        average_gradients(small, [self._copies])
        inner.apply_gradients([(p, p.grad) for p in small])
        if large:
            self._step_compressed(large, self._sparsity[min(int(behind / self._each), len(self._sparsity) - 1)])

    def _step_compressed(self, parameters: Sequence[Tensor], sparsity: float) -> None:
        """Exchange the share ``1 - sparsity`` of what has added up, of all parameters together, and move by it."""
        found = [self._take_largest(p, sparsity) for p in parameters]
        places, values = (np.concatenate([pair[i] for pair in found]) for i in (0, 1))
        communicator, n = self._copies.communicator, self._copies.nranks
        all_places, all_values = (np.empty((n, len(x)), x.dtype) for x in (places, values))
        communicator.all_gather(places, all_places)
        communicator.all_gather(values, all_values)
        rate, start = self._inner_opt.get_lr(), 0
        for parameter, (own, _) in zip(parameters, found, strict=True):
            part = slice(start, start + len(own))
            total = np.zeros(parameter.size, np.float32)
            np.add.at(total, all_places[:, part].ravel(), all_values[:, part].ravel())
            value = read_values(parameter, "dgc")
            parameter.set_value(value - np.float32(rate / n) * total.reshape(value.shape))
            start += len(own)

    def _take_largest(self, parameter: Tensor, sparsity: float) -> tuple[Any, Any]:
        """Places and values of the largest entries of the sum, which are zero in it from now on."""
        inner = self._inner_opt
        velocity, sums = (inner._accumulator(name, parameter) for name in ("velocity", "dgc_v"))
        gradient = parameter.grad
        if inner._grad_clip is not None:
            local = ClipGradByNorm(inner._grad_clip.clip_norm / sqrt(self._copies.nranks))
            ((_, gradient),) = local([(parameter, gradient)])
        gradient = inner._decay_gradient(parameter, gradient, inner._weight_decay)
        g, u, v = (read_values(x, "dgc").ravel() for x in (gradient, velocity, sums))
        m = np.float32(inner._momentum)
        u = m * (u + g) if inner._nesterov else m * u + g
        v = v + u + g if inner._nesterov else v + u
        count = max(1, round(v.size * (1 - sparsity)))
        places = np.sort(np.argpartition(np.abs(v), v.size - count)[v.size - count :])
        values = v[places]
        u[places] = v[places] = 0
        velocity.set_value(u.reshape(parameter.shape))
        sums.set_value(v.reshape(parameter.shape))
        return places, values

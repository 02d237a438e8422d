"""A native pass over many parameters and their states: what an update rule says, quicker, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy.optimizer.optimizer import Optimizer

__all__ = ["NativePass", "has_update_of"]

Pairs = list[tuple[Tensor, Tensor]]
Options = Mapping[str, Any]


def has_update_of(optimizer: Optimizer, rule: type[Optimizer], *starts: type[Optimizer]) -> bool:
    """Whether a class has the update of ``rule``, unchanged, from a value shrunk as it does or one of ``starts``."""
    own = type(optimizer)
    return own._update is rule._update and any(own._shrunk is each._shrunk for each in (rule, *starts))


class NativePass:
    """The pass ``rule`` of :func:`argosy_phi_ops.eager.native.update` for the parameters of an optimizer.

    Subclasses say what it reads besides a parameter and its gradient: :meth:`states`, and :meth:`scalars`, which are
    those of all parameters that :meth:`group_key` does not tell apart.
    """

    __slots__ = ("optimizer", "rule")

    def __init__(self, optimizer: Any, rule: str) -> None:
        self.optimizer, self.rule = optimizer, rule

    def states(self, parameter: Tensor) -> list[Tensor]:
        """The states that it reads and writes."""
        return []

    def group_key(self, parameter: Tensor, options: Options, shared: Any) -> Any:
        """Parameters of equal keys and the same rate have the same scalars."""
        return None

    def scalars(self, parameter: Tensor, rate: Any, options: Options, shared: Any) -> Sequence[Any] | None:
        """The numbers that it takes; None where they are no arrays on the host."""
        raise NotImplementedError

    def update(self, pairs: Pairs, options: Options, shared: Any) -> Pairs:
        """Update parameters and their states, many in one pass; the pairs that are left."""
        if not native.may_update():
            return pairs
        groups: dict[Any, Pairs] = {}
        rates: dict[Any, Any] = {}
        left = []
        for pair in pairs:
            parameter = pair[0]
            if self.optimizer._wants_master(parameter) or accelerator_of(parameter) is not None:
                left.append(pair)
                continue
            rate = self.optimizer._rate_of(parameter, options)
            key = (parameter.payload.dtype, id(rate), self.group_key(parameter, options, shared))
            groups.setdefault(key, []).append(pair)
            rates[key] = rate  # kept, so that no other one gets its id
        for key, group in groups.items():
            scalars = self.scalars(group[0][0], rates[key], options, shared)
            if scalars is None or not self._run(group, scalars):
                left += [pair for pair in group if scalars is None or not self._run([pair], scalars)]
        return left

    def _run(self, pairs: Pairs, scalars: Sequence[Any]) -> bool:
        """Run the pass; False where nothing was done."""
        states = [self.states(p) for p, _ in pairs]
        tensors = [x for (p, g), own in zip(pairs, states, strict=True) for x in (p, g, *own)]
        arrays = 2 + len(states[0])
        return native.update(self.rule, tensors, scalars, (0, *range(2, arrays)), arrays)

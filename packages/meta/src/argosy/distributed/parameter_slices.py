"""Which elements of parameters each rank of a group updates (ZeRO 1; Rajbhandari et al., 2020): parameters lie behind
each other in buffers that are cut into equal parts, so that ranks have as many states whatever the parameters' sizes.
Eagerly and in a captured function alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distributed.fleet.layers.mpu.mp_ops import gather_along, scatter_along
from argosy.distributed.group import Group
from argosy.nn.parameter import Parameter
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["SlicedBuffer", "make_buffers"]

_ATTRIBUTES = ("is_distributed", "optimize_attr", "do_model_average", "need_clip", "no_sync", "regularizer")
"""What optimizers and clips ask parameters for."""


class SlicedBuffer:
    """``params`` of one dtype behind each other, filled up to parts of equal length, one for each member of ``group``.
    ``slices`` are the elements of each parameter in this rank's part: flat parameters of the same names, None where
    there are none of them. All members call the methods alike."""

    def __init__(self, params: Sequence[Tensor], group: Group) -> None:
        self.params, self._group = list(params), group
        total = sum(p.size for p in params)
        self.length = -(-total // group.nranks)
        self._rest = self.length * group.nranks - total
        begin, self._bounds = group.rank * self.length, list[tuple[int, int]]()
        for p in self.params:
            low, high = max(0, min(begin, p.size)), max(0, min(begin + self.length, p.size))
            self._bounds.append((low, high))
            begin -= p.size
        self.slices = [self._slice(p, *bounds) for p, bounds in zip(self.params, self._bounds, strict=True)]

    def _slice(self, p: Tensor, low: int, high: int) -> Tensor | None:
        if low == high:
            return None
        make: Any = Parameter
        made: Tensor = make(p.detach().reshape([-1])[low:high].numpy(), dtype=p.dtype, name=p.name)
        vars(made).update({name: vars(p)[name] for name in _ATTRIBUTES if name in vars(p)})
        return made

    def reduce(self) -> None:
        """Give slices the members' means of the gradients of their parameters, which are taken away. All members have
        the same ones."""
        held = [p.grad for p in self.params]
        if all(g is None for g in held):
            return
        with no_grad():
            zeros = [get_operator("full")([p.size], 0, p.dtype.name) for p in self.params]
            flat = [z if g is None else g.detach().reshape([-1]) for z, g in zip(zeros, held, strict=True)]
            mine = scatter_along(self._row(flat), self._group, 0) / self._group.nranks
            own = self._cut(mine)
        for p, each, part, g in zip(self.params, self.slices, own, held, strict=True):
            p._grad = None
            if each is not None:
                each._grad = None if g is None else part

    def refresh(self) -> None:
        """Give slices the present elements of their parameters."""
        with no_grad():
            for p, each, (low, high) in zip(self.params, self.slices, self._bounds, strict=True):
                if each is not None:
                    write(each, p.detach().reshape([-1])[low:high])

    def publish(self) -> None:
        """Give every member's parameters what the slices are."""
        with no_grad():
            own = [each.detach() for each in self.slices if each is not None]
            fill = get_operator("full")([self.length - sum(x.size for x in own)], 0, self.params[0].dtype.name)
            whole = gather_along(get_operator("concat")([*own, fill]), self._group, 0)
            sizes = [p.size for p in self.params]
            parts = get_operator("split")(whole, [*sizes, self._rest])
            for p, part in zip(self.params, parts, strict=False):
                write(p, part.reshape(p.shape))

    def _row(self, flat: Sequence[Tensor]) -> Tensor:
        rest = get_operator("full")([self._rest], 0, flat[0].dtype.name)
        return get_operator("concat")([*flat, rest])  # type: ignore[no-any-return]

    def _cut(self, mine: Tensor) -> list[Tensor]:
        """This rank's part, as the elements of each parameter."""
        sizes = [high - low for low, high in self._bounds]
        return list(get_operator("split")(mine, [*sizes, self.length - sum(sizes)]))[: len(sizes)]


def make_buffers(parameters: Sequence[Tensor], group: Group, limit: int) -> list[SlicedBuffer]:
    """Buffers of parameters of one dtype each, of at most ``limit`` bytes where several are in one."""
    made: list[SlicedBuffer] = []
    for dtype in dict.fromkeys(p.dtype for p in parameters):
        bucket: list[Tensor] = []
        for p in (p for p in parameters if p.dtype == dtype):
            if bucket and (sum(x.size for x in bucket) + p.size) * dtype.itemsize > limit:
                made.append(SlicedBuffer(bucket, group))
                bucket = []
            bucket.append(p)
        made.append(SlicedBuffer(bucket, group))
    return made

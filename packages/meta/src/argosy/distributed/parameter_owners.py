"""Which rank of a group updates each parameter (ZeRO 1 and 2; Rajbhandari et al., 2020): gradients go to it, and what
it has made of the parameter comes from it, several together. Eagerly and in a captured function alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from argosy.distributed.collective import broadcast, reduce
from argosy.distributed.fleet.layers.mpu.mp_ops import gather_along, scatter_along
from argosy.distributed.group import Group
from argosy.distributed.reduction import ReduceOp
from argosy.nn.meshes import mesh_of
from argosy_autograd.modes import no_grad
from argosy_phi_ops.context import RankState
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["ParameterOwners", "publish_updates"]

_published: RankState[list[ref[ParameterOwners]]] = RankState("argosy.parameter_owners", list)
"""Those that optimizers of others publish by, the first made first, as on every rank."""


class ParameterOwners:
    """The members of ``group`` that update ``parameters``: the largest first, each to whoever has least of its mesh. At
    most ``limit`` bytes are on their way together; all members call the methods alike."""

    def __init__(self, parameters: Sequence[Tensor], group: Group, limit: int = 25 << 20) -> None:
        self.group, self.limit = group, limit
        self._owner: dict[int, int] = {}
        self._held: list[Tensor] = []  # so that no other tensor gets one's id
        self._loads: dict[Any, list[int]] = {}
        self.add(parameters)

    def add(self, parameters: Sequence[Tensor]) -> None:
        """Find owners of those that have none."""
        for parameter in sorted((p for p in parameters if id(p) not in self._owner), key=lambda p: -p.size):
            loads = self._loads.setdefault(mesh_of(parameter), [0] * self.group.nranks)
            self._owner[id(parameter)] = owner = loads.index(min(loads))
            loads[owner] += parameter.size
            self._held.append(parameter)

    def publish_later(self) -> None:
        """Let :func:`publish_updates` publish the parameters, after a step of an optimizer that knows no owners."""
        _published.value.append(ref(self))

    def owner(self, parameter: Tensor) -> int:
        """The place in the group of the rank that updates the parameter."""
        return self._owner[id(parameter)]

    def is_own(self, parameter: Tensor) -> bool:
        """Whether this rank updates the parameter."""
        return self.owner(parameter) == self.group.rank

    def means(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> list[Tensor | None]:
        """The members' mean of each gradient, to the parameter's owner; None to the others."""
        made: list[Tensor | None] = [None] * len(gradients)
        owners = [self._owner[id(p)] for p in parameters]
        with no_grad():
            for bucket in self._buckets(gradients):
                rows = self._rows(bucket, owners)
                if self._is_uneven(rows, gradients):
                    for i in bucket:
                        mean = gradients[i].detach().clone()
                        reduce(mean, self.group.ranks[owners[i]], ReduceOp.AVG, self.group)
                        made[i] = mean if owners[i] == self.group.rank else None
                    continue
                whole = get_operator("concat")([_row(row, gradients, _longest(rows, gradients)) for row in rows])
                mine = scatter_along(whole, self.group, 0) / self.group.nranks
                for i, part in zip(rows[self.group.rank], _cut(mine, rows[self.group.rank], gradients), strict=True):
                    made[i] = part
        return made

    def publish(self, parameters: Sequence[Tensor]) -> None:
        """Give every member what the owners have; of distributed parameters their parts on these ranks."""
        owners = [self._owner[id(p)] for p in parameters]
        parameters = [p if mesh_of(p) is None else p._local_value() for p in parameters]
        with no_grad():
            for bucket in self._buckets(parameters):
                rows = self._rows(bucket, owners)
                if self._is_uneven(rows, parameters):
                    for i in bucket:
                        broadcast(parameters[i], self.group.ranks[owners[i]], self.group)
                    continue
                length = _longest(rows, parameters)
                whole = gather_along(_row(rows[self.group.rank], parameters, length), self.group, 0)
                for row, held in zip(rows, get_operator("split")(whole, self.group.nranks), strict=True):
                    for i, part in zip(row, _cut(held, row, parameters), strict=True):
                        write(parameters[i], part)

    def _buckets(self, tensors: Sequence[Tensor]) -> Iterator[list[int]]:
        """The numbers of tensors of one dtype, at most ``limit`` bytes of them together."""
        for dtype in dict.fromkeys(x.dtype for x in tensors):
            bucket: list[int] = []
            nbytes = 0
            for i in (i for i, x in enumerate(tensors) if x.dtype == dtype):
                size = tensors[i].size * dtype.itemsize
                if bucket and nbytes + size > self.limit:
                    yield bucket
                    bucket, nbytes = [], 0
                bucket.append(i)
                nbytes += size
            yield bucket

    def _rows(self, bucket: Sequence[int], owners: Sequence[int]) -> list[list[int]]:
        return [[i for i in bucket if owners[i] == rank] for rank in range(self.group.nranks)]

    def _is_uneven(self, rows: Sequence[Sequence[int]], tensors: Sequence[Tensor]) -> bool:
        """Whether rows of equal lengths would be mostly empty: then each tensor goes alone."""
        total: int = sum(tensors[i].size for row in rows for i in row)
        return len(rows) * _longest(rows, tensors) > 2 * total


def publish_updates(parameters: Sequence[Tensor]) -> None:
    """Give every rank what the owners have of those parameters that have owners, each pipeline's by its own."""
    living = [owners for each in _published.value if (owners := each()) is not None]
    _published.value = [ref(owners) for owners in living]
    for owners in living:
        found = [p for p in parameters if id(p) in owners._owner and getattr(p.payload, "is_held", True)]
        if found:
            owners.publish(found)


def _longest(rows: Sequence[Sequence[int]], tensors: Sequence[Tensor]) -> int:
    longest: int = max(sum(tensors[i].size for i in row) for row in rows)
    return longest


def _row(row: Sequence[int], tensors: Sequence[Tensor], length: int) -> Tensor:
    """The tensors of a row behind each other, filled up to ``length``."""
    flat = [tensors[i].detach().reshape([-1]) for i in row]
    rest = length - sum(x.shape[0] for x in flat)
    like = next(iter(tensors))
    zeros = get_operator("full")([rest], 0, like.dtype.name)
    return get_operator("concat")([*flat, zeros])  # type: ignore[no-any-return]


def _cut(row: Tensor, members: Sequence[int], tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors ``members`` out of their row."""
    sizes = [tensors[i].size for i in members]
    rest = row.shape[0] - sum(sizes)
    parts = get_operator("split")(row, [*sizes, rest]) if sizes else []
    return [part.reshape(tensors[i].shape) for i, part in zip(members, parts, strict=False)]

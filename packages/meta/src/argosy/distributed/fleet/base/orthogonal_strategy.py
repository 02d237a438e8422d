"""Kinds of parallelism as the axes of a grid of ranks, each with a class of groups of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from argosy.distributed.environment import get_world_size
from argosy.distributed.fleet.base.strategy_group import StrategyGroupBase
from argosy.distributed.fleet.base.topology import CommunicateTopology
from argosy.distributed.group import Group

__all__ = ["OrthogonalStrategy"]


class OrthogonalStrategy:
    """Ranks in row-major order over the axes of ``list_of_strategy``: tuples of a name, a number of ranks and a class
    that makes the groups along the axis of its lines of ranks. All ranks make all groups together.

    ``fused_strategy_dict`` names groups of the ranks that differ along several axes alone; ``strategy_rank_list`` says
    which rank is at which place. Raises ValueError for a name that comes twice, for another number of ranks, and for
    fused axes that are not there.
    """

    def __init__(
        self,
        list_of_strategy: Sequence[tuple[str, int, type[StrategyGroupBase]]],
        fused_strategy_dict: Mapping[str, Sequence[str]] | None = None,
        strategy_rank_list: Sequence[int] | None = None,
    ) -> None:
        ranks = list(range(get_world_size())) if strategy_rank_list is None else list(strategy_rank_list)
        names, degrees = [name for name, _, _ in list_of_strategy], [degree for _, degree, _ in list_of_strategy]
        fused = fused_strategy_dict or {}
        _check(names, degrees, fused, len(ranks))
        self._grid = CommunicateTopology(names, degrees)

        def lines(axes: Sequence[str]) -> list[list[int]]:
            return [[ranks[place] for place in line] for line in self._grid.get_fused_ranks(axes)]

        self._groups = {name: make(lines([name])) for name, _, make in list_of_strategy}
        self._fused_groups = {name: StrategyGroupBase(lines(axes)) for name, axes in fused.items()}

    def strategy_group(self, name: str) -> StrategyGroupBase:
        """The groups along an axis. Raises ValueError for a name that none has."""
        return _named(self._groups, name)

    def fused_strategy_group(self, name: str) -> StrategyGroupBase:
        """The groups along several axes. Raises ValueError for a name that none has."""
        return _named(self._fused_groups, name)

    def rank_in_strategy(self, name: str) -> int:
        """This rank's place along an axis. Raises ValueError for a name that none has."""
        group = self.strategy_group(name).group
        return group.rank if isinstance(group, Group) else -1


def _check(names: list[str], degrees: list[int], fused: Mapping[str, Sequence[str]], size: int) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"OrthogonalStrategy: {twice} come more than once in {names}")
    if prod(degrees) != size:
        raise ValueError(f"OrthogonalStrategy: {dict(zip(names, degrees, strict=True))} are not {size} ranks")
    for name, axes in fused.items():
        if unknown := [axis for axis in axes if axis not in names]:
            raise ValueError(f"OrthogonalStrategy: {name!r} fuses {unknown}, which are not among {names}")


def _named(groups: Mapping[str, StrategyGroupBase], name: str) -> StrategyGroupBase:
    if name not in groups:
        raise ValueError(f"OrthogonalStrategy: no {name!r} among {sorted(groups)}")
    return groups[name]

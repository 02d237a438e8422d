"""Groups of ranks for one kind of parallelism, for code that lays out its ranks itself."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.distributed.environment import get_rank
from argosy.distributed.fleet.base.topology import groups_beside
from argosy.distributed.fleet.layers.mpu.random import RNGStatesTracker
from argosy.distributed.group import Group, new_group

__all__ = ["DPGroup", "MPGroup", "PPGroup", "ShardingGroup", "StrategyGroupBase"]


class StrategyGroupBase:
    """The groups ``list_of_ranks``, which all ranks make together, and random states for this kind of parallelism.

    Raises ValueError where there are no groups.
    """

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        if not list_of_ranks:
            raise ValueError(f"{type(self).__name__}: list_of_ranks names no group")
        self._rank = get_rank()
        self._list_of_ranks = [list(ranks) for ranks in list_of_ranks]
        made = [new_group(ranks) for ranks in self._list_of_ranks]
        self.list_of_group = [group for group in made if group.is_member()]
        self.random_states_tracker = RNGStatesTracker()

    def add_random_seed(self, name: str, seed: int) -> None:
        """A random state by name. Raises ValueError where the name or the seed is taken."""
        self.random_states_tracker.add(name, seed)

    def get_random_states_tracker(self) -> RNGStatesTracker:
        """The random states that were added."""
        return self.random_states_tracker

    @property
    def world_size(self) -> int | list[int]:
        """The number of ranks of a group; of each group where they differ."""
        sizes = [len(ranks) for ranks in self._list_of_ranks]
        return sizes[0] if len(set(sizes)) == 1 else sizes

    @property
    def group(self) -> Group | list[Group] | None:
        """This rank's group; all of them where it is in several, None where it is in none."""
        return self.list_of_group[0] if len(self.list_of_group) == 1 else self.list_of_group or None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._list_of_ranks})"


class _SingleGroup(StrategyGroupBase):
    """Groups of which a rank is in one at most. Raises ValueError where it is in several."""

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        super().__init__(list_of_ranks)
        if len(self.list_of_group) > 1:
            raise ValueError(f"{self!r}: rank {self._rank} is in {len(self.list_of_group)} groups")


class DPGroup(_SingleGroup):
    """Ranks with copies of a model."""


class MPGroup(_SingleGroup):
    """Ranks with parts of a model's layers."""


class ShardingGroup(_SingleGroup):
    """Ranks with parts of an optimizer's states."""


class PPGroup(_SingleGroup):
    """Stages of a pipeline, and groups with the stages beside this one."""

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        super().__init__(list_of_ranks)
        line = next((ranks for ranks in self._list_of_ranks if self._rank in ranks), [])
        beside = len(line) > 1
        place = line.index(self._rank) if beside else 0
        self._before = line[place - 1] if beside else None
        self._next = line[(place + 1) % len(line)] if beside else None
        several = max(map(len, self._list_of_ranks)) > 1
        self._p2p_groups = groups_beside(self._list_of_ranks) if several else (None,) * 4

    @property
    def rank_of_prev_stage(self) -> int | None:
        """The rank with the stage before, of the first stage the last one; None where there is one stage."""
        return self._before

    @property
    def rank_of_next_stage(self) -> int | None:
        """The rank with the next stage, of the last stage the first one; None where there is one stage."""
        return self._next

    @property
    def p2p_groups(self) -> tuple[Group | None, ...]:
        """Groups to send to the next stage, to the one before, to receive from the next one, from the one before."""
        return self._p2p_groups

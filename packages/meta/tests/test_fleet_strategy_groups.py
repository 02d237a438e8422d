"""Groups of ranks by kinds of parallelism, as code makes them that lays out its ranks itself."""

import pytest

import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy.distributed.fleet.base.orthogonal_strategy import OrthogonalStrategy
from argosy.distributed.fleet.base.strategy_group import DPGroup, MPGroup, PPGroup, StrategyGroupBase
from argosy.distributed.fleet.base.topology import CommunicateTopology


def test_a_grid_of_ranks():
    def main():
        kinds = [("dp", 1, DPGroup), ("mp", 2, MPGroup), ("pp", 2, PPGroup)]
        grid = OrthogonalStrategy(kinds, {"check": ["mp", "pp"]})
        stages = grid.strategy_group("pp")
        beside = [None if group is None else group.ranks for group in stages.p2p_groups]
        return (
            grid.strategy_group("mp").group.ranks, stages.group.ranks, stages.rank_of_prev_stage,
            stages.rank_of_next_stage, beside, grid.fused_strategy_group("check").world_size,
            grid.rank_in_strategy("mp"), grid.strategy_group("dp").world_size,
        )  # fmt: skip

    results = run_ranks(main, 4)
    for rank, (parts, stages, before, following, beside, fused, place, copies) in enumerate(results):
        other = rank ^ 1
        assert parts == [rank % 2, rank % 2 + 2]
        assert stages == sorted([rank, other])
        assert before == following == other
        assert beside == [sorted([rank, other])] * 4
        assert (fused, place, copies) == (4, rank // 2, 1)


def test_ranks_in_another_order():
    def main():
        grid = OrthogonalStrategy([("dp", 2, DPGroup), ("mp", 2, MPGroup)], strategy_rank_list=[0, 3, 1, 2])
        return grid.strategy_group("mp").group.ranks, grid.strategy_group("dp").group.ranks

    assert run_ranks(main, 4) == [([0, 3], [0, 1]), ([1, 2], [0, 1]), ([1, 2], [2, 3]), ([0, 3], [2, 3])]


def test_random_states_are_those_of_the_group():
    def main():
        group = StrategyGroupBase([[0], [1]])
        group.add_random_seed("own", 5 + dist.get_rank())
        return group.get_random_states_tracker().get_states_tracker().keys(), group.world_size, group.group.ranks

    assert [(list(names), size, ranks) for names, size, ranks in run_ranks(main, 2)] == [
        (["own"], 1, [0]),
        (["own"], 1, [1]),
    ]


def test_sizes_that_differ_and_ranks_in_several_groups():
    def main():
        group = StrategyGroupBase([[0, 1], [0]])
        sizes = group.world_size, type(group.group)
        if dist.get_rank() == 0:
            with pytest.raises(ValueError, match="rank 0 is in 2 groups"):
                DPGroup([[0, 1], [0]])
        else:
            DPGroup([[0, 1], [0]])
        return sizes

    (sizes, kind), _ = run_ranks(main, 2)
    assert sizes == [2, 1]
    assert kind is list


@pytest.mark.parametrize(
    ("kinds", "fused", "message"),
    [
        ([("dp", 2, DPGroup)], {}, "not 1 ranks"),
        ([("dp", 1, DPGroup), ("dp", 1, MPGroup)], {}, "more than once"),
        ([("dp", 1, DPGroup)], {"check": ["mp"]}, "'check' fuses"),
    ],
)
def test_grids_that_do_not_fit_are_refused(kinds, fused, message):
    with pytest.raises(ValueError, match=message):
        OrthogonalStrategy(kinds, fused)


def test_names_that_are_not_there():
    grid = OrthogonalStrategy([("dp", 1, DPGroup)])
    with pytest.raises(ValueError, match="no 'mp' among"):
        grid.strategy_group("mp")
    with pytest.raises(ValueError, match="no 'check' among"):
        grid.fused_strategy_group("check")
    with pytest.raises(ValueError, match="names no group"):
        StrategyGroupBase([])


def test_a_grid_is_that_of_the_topology():
    def main():
        grid = OrthogonalStrategy([("pp", 2, PPGroup), ("dp", 2, DPGroup)])
        return grid.strategy_group("pp").group.ranks

    lines = CommunicateTopology(["pipe", "data"], [2, 2]).get_comm_list("pipe")
    assert run_ranks(main, 4) == [lines[0], lines[1], lines[0], lines[1]]

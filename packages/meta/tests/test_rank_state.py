"""What belongs to a rank is the rank's: ranks that are threads of one process may differ in it."""

import threading

import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed import fleet
from argosy.distributed.debug import run_ranks
from argosy.distributed.fleet.layers.mpu.random import get_rng_state_tracker, model_parallel_random_seed
from argosy.nn.initializer import Constant, set_global_initializer


def _meet():
    """All ranks have come here: what one did before, the others could see after."""
    dist.barrier()


def test_each_rank_has_a_strategy_and_groups():
    """``fleet.init`` of one rank changes nothing of another's, nor of the process's."""

    def program():
        rank = dist.get_rank()
        with pytest.raises(RuntimeError, match=r"fleet\.init"):
            fleet.get_hybrid_communicate_group()
        strategy = fleet.DistributedStrategy()
        strategy.fuse_grad_size_in_MB = 1 + rank
        fleet.init(is_collective=True, strategy=strategy)
        _meet()
        model = fleet.distributed_model(paddle.nn.Linear(2, 2))
        return model._buffer_bytes >> 20, fleet.get_hybrid_communicate_group().get_data_parallel_rank()

    assert run_ranks(program, 2) == [(1, 0), (2, 1)]


def test_one_rank_may_lack_a_strategy():
    """Rank 0 calls ``fleet.init``; rank 1 is told that it did not."""

    def program():
        if dist.get_rank() == 0:
            fleet.init(is_collective=True)
        _meet()
        try:
            return fleet.distributed_optimizer("an optimizer")
        except RuntimeError as error:
            return str(error)

    first, second = run_ranks(program, 2)
    assert first == "an optimizer"
    assert "call fleet.init" in second


def test_each_rank_has_random_states_by_name():
    """Ranks draw from states of their own, though they have one name and are drawn from at one time."""

    def program():
        model_parallel_random_seed(100 * (1 + dist.get_rank()))
        _meet()
        drawn = []
        for _ in range(3):
            with get_rng_state_tracker().rng_state():
                drawn.append(paddle.rand([2]).tolist())
            _meet()
        return drawn

    together = run_ranks(program, 2)
    assert together[0] != together[1]
    for rank, drawn in enumerate(together):
        model_parallel_random_seed(100 * (1 + rank))
        with get_rng_state_tracker().rng_state():
            assert [paddle.rand([2]).tolist() for _ in range(3)] == drawn


def test_each_rank_has_initialisers():
    """The global one of rank 1 fills no parameter of rank 0."""

    def program():
        if dist.get_rank():
            set_global_initializer(Constant(3.0), Constant(4.0))
        _meet()
        layer = paddle.nn.Linear(1, 1)
        return layer.weight.item() == 3.0, layer.bias.item()

    assert run_ranks(program, 2) == [(False, 0.0), (True, 4.0)]
    assert paddle.nn.Linear(1, 1).bias.item() == 0.0


def test_what_a_rank_leaves_is_gone_with_it():
    """Ranks that come later, and threads of the process, begin anew."""

    def program():
        had = fleet.training._job.value
        fleet.init(is_collective=True)
        return had

    assert run_ranks(program, 2) == run_ranks(program, 2) == [None, None]
    seen = []
    thread = threading.Thread(target=lambda: seen.append(fleet.training._job.value))
    thread.start()
    thread.join()
    assert seen == [fleet.training._job.value]

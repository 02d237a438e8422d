"""Tokens sent to experts by hand: values of Paddle's documentation, and derivatives."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy.distributed.models.moe.utils import (
    _assign_pos,
    _limit_by_capacity,
    _number_count,
    _prune_gate_by_capacity,
    _random_routing,
)
from argosy.distributed.utils import global_gather, global_scatter

ROWS = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
COUNTS = [[2, 1, 1, 1], [1, 1, 2, 1]]  # of each rank's rows, for experts 0 and 1 of rank 0, then of rank 1
ARRIVING = [[2, 1, 1, 1], [1, 1, 2, 1]]
AT_EXPERTS = [[[1, 2], [3, 4], [1, 2], [5, 6], [3, 4]], [[7, 8], [5, 6], [7, 8], [9, 10], [9, 10]]]


def counts(values):
    return paddle.to_tensor(values, dtype="int64")


def test_rows_go_to_experts_and_back():
    def main():
        rank = dist.get_rank()
        x = paddle.to_tensor(ROWS, stop_gradient=False)
        there = global_scatter(x, counts(COUNTS[rank]), counts(ARRIVING[rank]))
        scaled = there * (rank + 1)
        back = global_gather(scaled, counts(COUNTS[rank]), counts(ARRIVING[rank]))
        weights = paddle.to_tensor(np.float32(np.arange(10)).reshape(5, 2))
        (back * weights).sum().backward()
        return there.numpy(), back.numpy(), x.grad.numpy()

    for rank, (there, back, gradient) in enumerate(run_ranks(main, 2)):
        np.testing.assert_array_equal(there, AT_EXPERTS[rank])
        owners = np.repeat([1, 1, 2, 2], COUNTS[rank])[:, None]
        np.testing.assert_array_equal(back, ROWS * owners)
        np.testing.assert_array_equal(gradient, np.arange(10).reshape(5, 2) * owners)


def test_a_rank_may_send_nothing():
    def main():
        rank = dist.get_rank()
        local, arriving = ([[0, 0], [0, 3]][rank], [[0, 0], [0, 3]][rank])
        x = paddle.ones([3 * rank, 2]) if rank else paddle.zeros([0, 2])
        return global_scatter(x, counts(local), counts(arriving)).shape

    assert [list(shape) for shape in run_ranks(main, 2)] == [[0, 2], [3, 2]]


def test_counts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="counts of 4 rows, but x has 5"):
        global_scatter(paddle.to_tensor(ROWS), counts([2, 2]), counts([2, 2]))
    with pytest.raises(ValueError, match=r"numbers from 0.*\[-1, 6\]"):
        global_scatter(paddle.to_tensor(ROWS), counts([-1, 6]), counts([-1, 6]))
    with pytest.raises(ValueError, match="for each of 1 ranks"):
        global_gather(paddle.to_tensor(ROWS), counts([5]), counts([2, 3]))
    with pytest.raises(ValueError, match="3 counts are not 2 times 2 capacities"):
        _limit_by_capacity(counts([1, 2, 3]), counts([1, 1]), 2)


def test_experts_of_tokens():
    gates = counts([[0, 2], [0, 2]])
    found = _number_count(gates, 6)
    assert found.tolist() == [2, 0, 2, 0, 0, 0]
    assert _assign_pos(gates, found.cumsum()).tolist() == [2, 0, 3, 1]
    assert _number_count(counts([-1, 7, 1]), 2).tolist() == [0, 1]


def test_capacities():
    assert _limit_by_capacity(counts([1, 2, 2, 8, 3, 6]), counts([5, 5, 5]), 2).tolist() == [1, 2, 2, 4, 3, 3]
    pruned = _prune_gate_by_capacity(counts([1, 3, 3, 3, 3, 2, 1, 1]), counts([0, 3, 1, 3, 0, 0, 0, 0]), 8, 1)
    assert pruned.tolist() == [1, 3, 3, 3, -1, 2, 1, 1]


def test_weak_second_experts_are_dropped():
    weights = paddle.to_tensor([[0.7, 0.3], [0.9, 0.1]])
    assert _random_routing(counts([[0, 1], [2, 3]]), weights, paddle.to_tensor([0.5, 0.5])).tolist() == [
        [0, 1],
        [2, -1],
    ]
    with pytest.raises(ValueError, match="topk is 2"):
        _random_routing(counts([[0]]), weights, paddle.to_tensor([0.5]), topk=1)

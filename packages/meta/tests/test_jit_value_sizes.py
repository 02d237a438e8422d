"""Captured functions whose results have as many rows as values tell: reductions of segments."""

import numpy as np
import pytest

import argosy as paddle
from argosy import geometric
from argosy.static import InputSpec

SEGMENTS = [geometric.segment_sum, geometric.segment_mean, geometric.segment_max, geometric.segment_min]
IDS = ([0, 0, 1, 1, 2], [0, 1, 1, 3, 3], [0, 0, 0, 0, 0], [1, 4, 5, 8, 8], [0, 0, 1, 1, 2])


def _x(rows=5):
    return paddle.arange(rows * 3, dtype="float32").reshape([rows, 3])


def _static(function, **options):
    return paddle.jit.to_static(function, full_graph=True, **options)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda f: f.__name__)
def test_ids_of_the_call_tell_the_rows(segment, whole):
    """One program serves all numbers of segments where the graph must not break; Python reads the number elsewhere."""
    run = paddle.jit.to_static(lambda x, ids: segment(x * 2, ids) + 1, full_graph=whole)
    for given in IDS:
        ids = paddle.to_tensor(given)
        np.testing.assert_allclose(run(_x(), ids).numpy(), (segment(_x() * 2, ids) + 1).numpy(), rtol=1e-6)
    if whole:
        assert len(run.compiled) == 1


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda f: f.__name__)
def test_ids_that_the_function_computes_tell_the_rows(segment):
    """What computes the ids, of arguments, a state and a number, runs before the program that takes the size."""
    shift = paddle.to_tensor(1)

    def f(x, batch, scale):
        ids = (batch * scale).astype("int64") // 2 + shift
        pooled = segment(x, ids)
        return pooled.sum(), segment(pooled, paddle.arange(pooled.shape[0]) // 2), ids

    run = _static(f)
    for scale in (1.0, 2.0, 3.0):
        for given in IDS:
            batch = paddle.to_tensor(given)
            for got, expected in zip(run(_x(), batch, scale), f(_x(), batch, scale), strict=True):
                np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)
    shift.set_value(paddle.to_tensor(2))
    again = run(_x(), paddle.to_tensor(IDS[0]), 2.0), f(_x(), paddle.to_tensor(IDS[0]), 2.0)
    np.testing.assert_allclose(again[0][1].numpy(), again[1][1].numpy())


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda f: f.__name__)
def test_gradients_go_back_through_segments(segment):
    """A forward that is trained from outside, and a step that is captured whole, give eager execution's gradients."""
    layer = paddle.nn.Linear(3, 2)

    def f(x, ids):
        return segment(layer(x), ids).square().sum()

    def step(x, ids):
        loss = f(x, ids)
        loss.backward()
        made = layer.weight.grad + 0
        layer.clear_gradients()
        return loss, made

    forward, whole = _static(f), _static(step)
    for given in IDS:
        ids = paddle.to_tensor(given)
        loss, expected = step(_x(), ids)
        forward(_x(), ids).backward()
        np.testing.assert_allclose(layer.weight.grad.numpy(), expected.numpy(), rtol=1e-5)
        layer.clear_gradients()
        for got, wanted in zip(whole(_x(), ids), (loss, expected), strict=True):
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
    assert len(forward.compiled) == len(whole.compiled) == 1


def test_a_number_that_python_needs_is_one_of_the_program():
    """Where a symbol will not do, there is a program for each number that calls have."""

    def f(x, ids):
        pooled = geometric.segment_sum(x, ids)
        return [row.sum() for row in pooled.unbind(0)]

    run = _static(f)
    with pytest.warns(UserWarning, match="for each number that values give as a size"):
        first = run(_x(), paddle.to_tensor(IDS[0]))
    assert len(first) == 3
    for given in IDS:
        ids = paddle.to_tensor(given)
        for got, expected in zip(run(_x(), ids), f(_x(), ids), strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy())
    assert len(run.compiled) == 4  # 3, 4, 1 and 9 segments


def test_sizes_of_the_spec_and_of_values():
    """Rows that an input_spec leaves open, and segments that the ids tell."""
    spec = [InputSpec([None, 3]), InputSpec([None], "int64")]
    run = _static(lambda x, ids: geometric.segment_mean(x, ids), input_spec=spec)
    for rows, ids in ((5, IDS[0]), (5, IDS[3]), (7, [0, 0, 1, 2, 2, 2, 6]), (1, [2])):
        ids = paddle.to_tensor(ids)
        expected = geometric.segment_mean(_x(rows), ids)
        np.testing.assert_allclose(run(_x(rows), ids).numpy(), expected.numpy(), rtol=1e-6)


def test_messages_to_as_many_nodes_as_a_tensor_says():
    """``out_size`` may be a tensor: 0 or less means as many as there were."""

    def f(x, ends, size):
        return geometric.send_u_recv(x, ends, ends, out_size=size)

    run, ends = _static(f), paddle.to_tensor([0, 1, 2, 1])
    for size in (3, 6, 0):
        got = run(_x(), ends, paddle.to_tensor(size))
        np.testing.assert_allclose(got.numpy(), f(_x(), ends, size).numpy())


def test_a_size_within_a_branch_names_operator_and_line():
    """Nothing outside of a branch has its values: the error says which operator needs the size, and where."""

    def f(x, ids):
        if x.sum() > 0:
            y = geometric.segment_sum(x, ids).sum()
        else:
            y = x.sum()
        return y

    with pytest.raises(NotImplementedError, match=r"segment_sum: the result has .* \(.*test_jit_value_sizes.py:\d+\)"):
        _static(f)(_x(), paddle.to_tensor(IDS[0]))

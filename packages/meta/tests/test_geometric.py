"""Graphs: random neighbourhoods, gradients of messages, captured layers, wrong input."""

import numpy as np
import pytest

import argosy as paddle

G = paddle.geometric
ROW, COLUMNS = paddle.to_tensor([3, 7, 0, 9, 1, 4]), paddle.to_tensor([0, 2, 2, 5, 6])


def test_sampled_neighbours_are_neighbours_drawn_evenly():
    """Two of the three neighbours of a node, none twice, each as often as the others; the seed decides."""
    paddle.seed(5)
    seen = np.zeros(10)
    for _ in range(300):
        found, counts = G.sample_neighbors(ROW, COLUMNS, paddle.to_tensor([2, 1]), 2)
        assert counts.tolist() == [2, 0]
        assert len(set(found.tolist())) == 2
        seen[found.numpy()] += 1
    assert set(np.flatnonzero(seen)) == {0, 9, 1}
    assert seen.max() / seen[[0, 9, 1]].min() < 1.4
    again = []
    for _ in range(2):
        paddle.seed(9)
        again.append(G.sample_neighbors(ROW, COLUMNS, paddle.to_tensor([2, 0, 3]), 1)[0].tolist())
    assert again[0] == again[1]


def test_heavy_edges_are_drawn_more_often():
    """One of three neighbours: chances in proportion to the weights; an edge of weight 0 comes last."""
    paddle.seed(5)
    weights = paddle.to_tensor([1.0, 1.0, 0.0, 3.0, 1.0, 1.0])
    drawn = [int(G.weighted_sample_neighbors(ROW, COLUMNS, weights, paddle.to_tensor([2]), 1)[0]) for _ in range(400)]
    assert drawn.count(0) == 0
    assert 0.65 < drawn.count(9) / 400 < 0.85
    found, _, edges = G.weighted_sample_neighbors(
        ROW, COLUMNS, weights, paddle.to_tensor([2]), 2, paddle.arange(6), return_eids=True
    )
    assert ROW.numpy()[edges.numpy()].tolist() == found.tolist()


def test_a_layer_on_a_graph_is_captured_and_trains():
    """Mean over neighbours and a linear map: the compiled step gives the eager step's losses."""
    source, end = paddle.to_tensor([0, 1, 2, 0]), paddle.to_tensor([1, 2, 1, 0])
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((3, 4)).astype("float32"))

    def losses(convert):
        paddle.seed(0)
        layer = paddle.nn.Linear(4, 1)
        rule = paddle.optimizer.SGD(0.1, parameters=layer.parameters())

        def step():
            loss = (layer(G.send_u_recv(x, source, end, "mean")) - 1).square().sum()
            loss.backward()
            rule.step()
            rule.clear_grad()
            return loss

        run = convert(step)
        return [float(run()) for _ in range(5)]

    plain = losses(lambda f: f)
    np.testing.assert_allclose(losses(paddle.jit.to_static(full_graph=True)), plain, rtol=1e-5)
    assert plain[-1] < plain[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, i: G.send_u_recv(x, i, i, "median"), "reduce_op"),
        (lambda x, i: G.send_uv(x, x, i, i, "power"), "message_op"),
        (lambda x, i: G.segment_sum(x, i[:1]), "segment_ids should have the shape"),
        (lambda x, i: G.sample_neighbors(ROW, COLUMNS, i + 4), "input_nodes should be from 0 to 3"),
        (lambda x, i: G.sample_neighbors(ROW, COLUMNS, i, 1, None, True), "needs eids"),
        (lambda x, i: G.reindex_graph(i, i, i + 1), "neighbors should hold as many, got 2"),
    ],
)
def test_wrong_input_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call(paddle.ones([2, 3]), paddle.to_tensor([0, 1]))


def test_an_empty_graph_gives_nothing():
    none = paddle.zeros([0], "int64")
    assert G.send_u_recv(paddle.ones([2, 3]), none, none).tolist() == [[0.0] * 3] * 2
    assert G.segment_sum(paddle.ones([0, 3]), none).shape == [0, 3]


@pytest.mark.parametrize(("reduce", "expected"), [("max", [[2.0, 1.0], [1.0, 1.0], [1.0, 0.0]]),
                                                  ("min", [[2.0, 2.0], [1.0, 0.0], [1.0, 1.0]])])  # fmt: skip
@pytest.mark.parametrize("captured", [False, True])
def test_each_of_equal_messages_gets_the_whole_gradient(reduce, expected, captured):
    """Recorded from paddlepaddle 3.3.1."""

    def gradient(x, source, target):
        y = G.send_u_recv(x, source, target, reduce)
        return paddle.grad(y.sum(), x)[0]

    x = paddle.to_tensor([[1.0, 2.0], [1.0, 5.0], [1.0, 2.0]], stop_gradient=False)
    run = paddle.jit.to_static(gradient, full_graph=True) if captured else gradient
    assert run(x, paddle.to_tensor([0, 1, 2, 0]), paddle.to_tensor([0, 0, 0, 1])).tolist() == expected


def test_extremes_of_segments_may_be_infinite():
    x = paddle.to_tensor([float("inf"), 1.0, 2.0, -float("inf")], stop_gradient=False)
    y = G.segment_max(x, paddle.to_tensor([0, 0, 1, 1]))
    y.sum().backward()
    assert y.tolist() == [float("inf"), 2.0]
    assert x.grad.tolist() == [0.0, 0.0, 1.0, 0.0]

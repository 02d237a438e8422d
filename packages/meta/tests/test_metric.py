"""Metrics, against figures worked out by hand (and given by Paddle)."""

import numpy as np
import pytest

import argosy as paddle

SCORES = [[0.1, 0.2, 0.7], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]]
LABELS = [[2], [1], [0]]


def test_accuracy_counts_labels_among_the_likeliest():
    """compute gives a correctness matrix by rank; update and accumulate give the shares for each k."""
    metric = paddle.metric.Accuracy((1, 2))
    correct = metric.compute(paddle.to_tensor(SCORES), paddle.to_tensor(LABELS))
    assert correct.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert metric.update(correct) == [pytest.approx(1 / 3), 1.0]
    metric.update(np.array([[1.0, 0.0]] * 3))
    assert metric.accumulate() == [pytest.approx(4 / 6), 1.0]
    assert metric.name() == ["acc_top1", "acc_top2"]
    metric.reset()
    assert metric.accumulate() == [0.0, 0.0]
    assert paddle.metric.Accuracy().name() == ["acc"]


@pytest.mark.parametrize("labels", [LABELS, [2, 1, 0], np.eye(3)[[2, 1, 0]].tolist()])
def test_labels_are_indices_or_one_hot(labels):
    """Labels as column, as vector and as one-hot rows mean the same."""
    share = paddle.metric.accuracy(paddle.to_tensor(SCORES), paddle.to_tensor(labels), k=1)
    assert float(share) == pytest.approx(1 / 3)


def test_accuracy_is_part_of_a_captured_step():
    """The figure needs no value before the program runs: a whole step is one program with it, and counts are told."""
    scores, labels = paddle.to_tensor(SCORES, stop_gradient=False), paddle.to_tensor(LABELS)
    correct, total = paddle.zeros([1], "int32"), paddle.zeros([], "int64")

    def step(scores, labels):
        hits = paddle.metric.Accuracy((1, 2)).compute(scores, labels)
        return paddle.metric.accuracy(scores, labels, 2, correct, total), hits

    share, hits = paddle.jit.to_static(step, full_graph=True)(scores, labels)
    assert float(share) == 1.0
    assert share.stop_gradient
    assert hits.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert (correct.tolist(), total.tolist()) == ([3], 3)


def test_precision_and_recall():
    """Of 2 called positive beyond one half 1 is; of 2 positives 1 was found, over two batches."""
    precision, recall = paddle.metric.Precision(), paddle.metric.Recall()
    for metric in (precision, recall):
        metric.update(np.array([0.1, 0.5]), np.array([0, 1]))
        metric.update(paddle.to_tensor([[0.6], [0.7]]), paddle.to_tensor([[1], [0]]))
    assert precision.accumulate() == 0.5
    assert recall.accumulate() == 0.5
    precision.reset()
    assert precision.accumulate() == 0.0
    assert (precision.name(), recall.name()) == ("precision", "recall")


def test_auc_is_the_share_of_ordered_pairs():
    """The area equals the share of (positive, negative) pairs in the right order, ties counted half."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    scores = np.round(np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1), 2)
    metric = paddle.metric.Auc()
    metric.update(np.stack([1 - scores, scores], 1)[:90], labels[:90, None])
    metric.update(np.stack([1 - scores, scores], 1)[90:], labels[90:, None])
    difference = scores[labels == 1][:, None] - scores[labels == 0][None]
    assert metric.accumulate() == pytest.approx(((difference > 0) + 0.5 * (difference == 0)).mean())
    metric.reset()
    assert metric.accumulate() == 0.0


def test_auc_of_precision_over_recall():
    """Four scores by hand: precision 1, 1/2, 2/3, 1/2 at recall 1/2, 1/2, 1, 1."""
    metric = paddle.metric.Auc(curve="PR")
    metric.update(np.array([0.9, 0.7, 0.5, 0.2]), np.array([1, 0, 1, 0]))
    assert metric.accumulate() == pytest.approx(0.5 * 1.0 + 0.5 * (1 / 2 + 2 / 3) / 2)


def test_wrong_arguments_are_named():
    """Sizes that do not fit and settings that do not exist are refused."""
    with pytest.raises(ValueError, match="topk"):
        paddle.metric.Accuracy(0)
    with pytest.raises(ValueError, match="k is too large"):
        paddle.metric.accuracy(paddle.to_tensor(SCORES), paddle.to_tensor(LABELS), k=4)
    with pytest.raises(ValueError, match=r"labels \[2\]"):
        paddle.metric.accuracy(paddle.to_tensor(SCORES), paddle.to_tensor([1, 2]))
    with pytest.raises(ValueError, match="2 predictions and 3 labels"):
        paddle.metric.Recall().update(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="probabilities"):
        paddle.metric.Auc().update(np.array([2.0]), np.array([1]))
    with pytest.raises(ValueError, match="'ROC' or 'PR', got 'DET'"):
        paddle.metric.Auc(curve="DET")
    with pytest.raises(NotImplementedError, match="does not define update"):
        paddle.metric.Metric().update()

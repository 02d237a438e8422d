"""Losses over alignments against sums over all paths, margins against their formula, and what they refuse."""

import itertools

import numpy as np
import pytest

import argosy as paddle
from argosy.nn import functional as F


def _collapsed(path, blank):
    return [k for k, _ in itertools.groupby(path) if k != blank]


def test_ctc_is_the_sum_over_all_paths():
    """Minus the logarithm of the probabilities of all paths that collapse to the labels."""
    scores = np.random.default_rng(0).standard_normal((4, 1, 3))
    p = np.exp(scores[:, 0]) / np.exp(scores[:, 0]).sum(-1, keepdims=True)
    total = sum(
        np.prod([p[t, k] for t, k in enumerate(path)])
        for path in itertools.product(range(3), repeat=4)
        if _collapsed(path, 0) == [1, 2]
    )
    args = [paddle.to_tensor(a) for a in (scores, np.array([[1, 2]]), np.array([4]), np.array([2]))]
    assert float(F.ctc_loss(*args, reduction="none")) == pytest.approx(-np.log(total), rel=1e-6)


def test_labels_that_no_path_gives_have_an_infinite_loss():
    """Without zero_infinity it is infinite, with it zero and without gradient."""
    x = paddle.to_tensor(np.zeros((2, 1, 3), np.float32), stop_gradient=False)
    args = [paddle.to_tensor(np.array(a)) for a in ([[1, 1, 2]], [2], [3])]
    assert float(F.ctc_loss(x, *args, reduction="sum")) == float("inf")
    loss = F.ctc_loss(x, *args, reduction="sum", zero_infinity=True)
    loss.backward()
    assert float(loss) == 0
    assert np.isfinite(x.grad.numpy()).all()


def test_a_transducer_is_the_sum_over_all_paths():
    """All orders of T silent steps and L emissions that end silently."""
    rng = np.random.default_rng(1)
    logp = np.log(rng.dirichlet(np.ones(3), (1, 3, 3)))
    label, steps = [1, 2], 3
    total = 0.0
    for emissions in itertools.combinations(range(steps + 1), 2):
        u = t = 0
        weight = 1.0
        for turn in range(steps - 1 + 2):
            if turn in emissions:
                weight *= np.exp(logp[0, t, u, label[u]])
                u += 1
            else:
                weight *= np.exp(logp[0, t, u, 0])
                t += 1
        total += weight * np.exp(logp[0, t, u, 0])
    args = [paddle.to_tensor(a) for a in (logp, np.array([label]), np.array([3]), np.array([2]))]
    assert float(F.rnnt_loss(*args, fastemit_lambda=0.0)) == pytest.approx(-np.log(total), rel=1e-6)


def test_captured_alignments_equal_eager_ones():
    """A compiled CTC loss and its gradient are those of plain execution."""
    scores = np.random.default_rng(0).standard_normal((5, 2, 4)).astype("float32")
    labels, steps, counts = (paddle.to_tensor(np.array(a)) for a in ([[1, 2], [3, 0]], [5, 4], [2, 1]))

    def loss(x):
        x = x.detach()
        x.stop_gradient = False
        total = F.ctc_loss(x, labels, steps, counts)
        return total, paddle.grad(total, [x])[0]

    eager = loss(paddle.to_tensor(scores))
    captured = paddle.jit.to_static(loss, full_graph=True)(paddle.to_tensor(scores))
    for one, other in zip(eager, captured, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)


def test_margins_follow_their_formula():
    """The label's cosine becomes cos(m1 t + m2) - m3; without margins it is a scaled softmax."""
    cosines = np.random.default_rng(0).uniform(-0.9, 0.9, (3, 4))
    label = np.array([0, 3, 1])
    x, y = paddle.to_tensor(cosines), paddle.to_tensor(label)
    plain = F.margin_cross_entropy(x, y, margin2=0.0, scale=5.0)
    assert float(plain) == pytest.approx(float(F.cross_entropy(x * 5.0, y)), rel=1e-5)
    changed = cosines.copy()
    rows = np.arange(3)
    changed[rows, label] = np.cos(1.1 * np.arccos(changed[rows, label]) + 0.2) - 0.1
    loss, softmax = F.margin_cross_entropy(x, y, 1.1, 0.2, 0.1, 8.0, return_softmax=True, reduction="none")
    expected = np.exp(8 * changed) / np.exp(8 * changed).sum(-1, keepdims=True)
    np.testing.assert_allclose(softmax.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(loss.numpy()[:, 0], -np.log(expected[rows, label]), rtol=1e-5)


def test_fractional_pooling_draws_its_windows():
    """Without random_u the windows follow the generator; every maximum is an element of the input."""
    x = paddle.to_tensor(np.arange(81, dtype=np.float32).reshape(1, 1, 9, 9))
    paddle.seed(5)
    first = F.fractional_max_pool2d(x, 4, return_mask=True)
    paddle.seed(5)
    again = F.fractional_max_pool2d(x, 4)
    np.testing.assert_array_equal(first[0].numpy(), again.numpy())
    np.testing.assert_array_equal(first[0].numpy().ravel(), first[1].numpy().ravel())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.ctc_loss(*[paddle.ones([2, 2])] * 4), "ctc_loss"),
        (lambda: F.hsigmoid_loss(paddle.ones([2, 2]), paddle.ones([2]), 1, paddle.ones([1, 2])), "num_classes"),
        (
            lambda: F.max_unpool2d(paddle.ones([1, 1, 1, 1]), paddle.full([1, 1, 1, 1], 9, "int32"), 2),
            "should be from 0 to 3, got 9 to 9",
        ),
        (lambda: paddle.nn.AdaptiveLogSoftmaxWithLoss(4, 8, [5, 3]), "cutoffs"),
        (lambda: paddle.nn.AdaptiveLogSoftmaxWithLoss(8, 8, [3])(paddle.ones([1, 8]), paddle.to_tensor([9])), "9"),
        (lambda: F.grid_sample(paddle.ones([1, 1, 2, 2]), paddle.ones([1, 2, 2, 3])), "grid_sample"),
        (lambda: F.affine_grid(paddle.ones([1, 2, 2]), [1, 1, 2, 2]), "affine_grid"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    """Wrong shapes, sizes and settings are named."""
    with pytest.raises(ValueError, match=said):
        call()


def test_sampled_classes_hold_the_labels_and_as_many_as_asked():
    """Every label's class is among them, labels point at their places, and more classes than asked are all kept."""
    label = paddle.to_tensor([7, 2, 7, 11])
    renumbered, sampled = F.class_center_sample(label, 20, 6)
    assert len(set(sampled.tolist())) == 6
    assert sampled.tolist() == sorted(sampled.tolist())
    assert [sampled.tolist()[i] for i in renumbered.tolist()] == label.tolist()
    assert F.class_center_sample(label, 20, 2)[1].tolist() == [2, 7, 11]
    with pytest.raises(ValueError, match="of 10 classes"):
        F.class_center_sample(label, 10, 5)


def test_backends_of_attention_are_checked():
    """A choice of kernels changes no result; what is none is refused."""
    from argosy.nn.attention import SDPBackend, sdpa_kernel

    x = paddle.rand([1, 4, 2, 3])
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        chosen = F.scaled_dot_product_attention(x, x, x)
    np.testing.assert_array_equal(chosen.numpy(), F.scaled_dot_product_attention(x, x, x).numpy())
    with pytest.raises(TypeError, match="flash"), sdpa_kernel(["flash"]):
        pass

"""Sequences of tags: the best of all of them, gradients of its score, wrong input."""

from itertools import pairwise, product

import numpy as np
import pytest

import argosy as paddle


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("length", [1, 3, 4])
def test_no_sequence_is_better(tagged, length):
    """Held against all sequences of three tags; steps after the end do not count."""
    rng = np.random.default_rng(length)
    emission, moves = rng.standard_normal((4, 3)), rng.standard_normal((3, 3))

    def score(tags):
        found = sum(emission[i, tag] for i, tag in enumerate(tags))
        found += sum(moves[a, b] for a, b in pairwise(tags))
        return found + (moves[-1, tags[0]] + moves[-2, tags[-1]] if tagged else 0.0)

    best = max(product(range(3), repeat=length), key=score)
    inputs = (paddle.to_tensor(a) for a in (emission[None], moves))
    scores, path = paddle.text.viterbi_decode(*inputs, paddle.to_tensor([length]), tagged)
    assert path[0].tolist() == list(best)
    np.testing.assert_allclose(float(scores), score(best))


def test_the_score_has_gradients():
    """Each emission on the path adds 1 to the score's, each transition as often as it is taken."""
    emission = paddle.to_tensor([[[3.0, 0.0], [0.0, 2.0], [4.0, 0.0]]], stop_gradient=False)
    moves = paddle.zeros([2, 2])
    moves.stop_gradient = False
    decode = paddle.text.ViterbiDecoder(moves, include_bos_eos_tag=False)
    scores, path = decode(emission, paddle.to_tensor([3]))
    scores.sum().backward()
    assert path.tolist() == [[0, 1, 0]]
    assert emission.grad.tolist() == [[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]
    assert moves.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("shapes", "lengths", "text"),
    [
        (([2, 3, 4], [4, 3]), [3, 3], "are wanted"),
        (([2, 3, 4], [4, 4]), [3], "are wanted"),
        (([2, 3, 4], [4, 4]), [4, 1], "from 1 to 3"),
        (([2, 3, 4], [4, 4]), [0, 1], "from 1 to 3"),
    ],
)
def test_shapes_and_lengths_that_do_not_fit(shapes, lengths, text):
    with pytest.raises(ValueError, match=text):
        paddle.text.viterbi_decode(*map(paddle.ones, shapes), paddle.to_tensor(lengths))

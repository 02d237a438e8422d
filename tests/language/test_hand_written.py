"""Models whose users wrote attention and masks by hand are exported and decoded with a cache."""

import math

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F
from argosy_infer import Generator
from argosy_infer.caches import caches_of


def buffer_free(scores, length):
    """As minGPT does, without its buffer."""
    seen = paddle.tril(paddle.ones([length, length])).reshape([1, 1, length, length])
    return paddle.where(seen == 0, paddle.full([], -1e9), scores)


MASK = np.tril(np.ones((1, 1, 32, 32), np.float32))


def buffered(scores, length, mask):
    """As minGPT does."""
    return scores.masked_fill(mask[:, :, :length, :length] == 0, float("-inf"))


def added(scores, length):
    return scores + paddle.triu(paddle.full([length, length], float("-inf")), diagonal=1)


def windowed(scores, length):
    places = paddle.arange(length)
    far = places.unsqueeze(1) - places.unsqueeze(0)
    return scores.masked_fill(paddle.logical_or(far < 0, far >= 3), -1e9)


def capped(scores, length):
    return added(paddle.tanh(scores / 2.0) * 2.0, length)


class HandWritten(nn.Layer):
    def __init__(self, mask, products="matmul"):
        super().__init__()
        self.mask, self.products = mask, products
        self.table, self.places = nn.Embedding(23, 16), nn.Embedding(32, 16)
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 23)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("seen", paddle.to_tensor(MASK))

    def forward(self, ids):
        length = ids.shape[1]
        x = self.table(ids) + self.places(paddle.arange(length))
        q, k, v = (y.reshape([0, 0, 4, 4]).transpose([0, 2, 1, 3]) for y in paddle.chunk(self.qkv(x), 3, axis=-1))
        if self.products == "matmul":
            scores = paddle.matmul(q, k.transpose([0, 1, 3, 2])) / math.sqrt(4)
        else:
            scores = paddle.einsum("bhqd,bhkd->bhqk", q * 0.5, k)
        given = (scores, length, self.seen) if self.mask is buffered else (scores, length)
        weights = self.dropout(F.softmax(self.mask(*given), axis=-1))
        mixed = weights @ v if self.products == "matmul" else paddle.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.head(x + self.out(mixed.transpose([0, 2, 1, 3]).flatten(2)))


@pytest.mark.parametrize("products", ["matmul", "einsum"])
@pytest.mark.parametrize(("mask", "window"), [(buffered, 0), (buffer_free, 0), (added, 0), (windowed, 3), (capped, 0)])
def test_hand_written_attention_is_decoded_with_a_cache(mask, window, products, tmp_path):
    paddle.seed(5)
    model = HandWritten(mask, products)
    model.eval()
    paddle.jit.save(model, tmp_path / "export", input_spec=[paddle.static.InputSpec([None, None], "int64", "ids")])
    generator = Generator(tmp_path / "export", capacity=64, block_size=4, compiler="reference")
    assert {c.window for c in caches_of(generator.predictor.program)} == {window}
    ids = [3, 17, 5, 20, 8, 8, 21, 2]
    expected = model(paddle.to_tensor([ids])).numpy()[0]
    made = np.concatenate([generator.step(ids[a:b], range(a, b), [0] * (b - a)) for a, b in ((0, 5), (5, 6), (6, 8))])
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

"""Recurrent cells are served by the program that was trained: what they carry is cached for each token."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.jit.export import export_program
from argosy.static import InputSpec
from argosy_infer import Generator, LoadedProgram, Predictor, make_incremental
from argosy_infer.caches import caches_of
from argosy_infer.errors import IncrementalError
from argosy_phi_ops.compiler import available_compilers

WIDTH, WORDS = 8, 16
IDS = InputSpec([None, None], "int64", "ids")


class Recurrent(nn.Layer):
    """An LSTM and a GRU; ``use``: what is made of the GRU's results, its last state and the first one."""

    def __init__(self, use=lambda y, last, first: y, direction="forward"):
        super().__init__()
        paddle.seed(3)
        self.use, self.table = use, nn.Embedding(WORDS, WIDTH)
        self.lstm, self.gru = nn.LSTM(WIDTH, WIDTH), nn.GRU(WIDTH, WIDTH, direction=direction)
        self.head = nn.Linear(WIDTH * self.gru.num_directions, WORDS)

    def forward(self, ids, first=None):
        x, _ = self.lstm(self.table(ids))
        y, last = self.gru(x, None if first is None else first.unsqueeze(0))
        return self.head(self.use(y, last, first))


@pytest.mark.parametrize("compiler", sorted({"reference", available_compilers()[0]}))
def test_cells_carry_on(compiler):
    """In pieces of any size beside another text, and from an earlier token, each gives what the whole gives, compiled
    with the same bits as alone."""
    model, ids = Recurrent(), np.random.default_rng(0).integers(0, WORDS, (2, 12))
    model.eval()
    want = model(paddle.to_tensor(ids)).numpy()
    generator = Generator(export_program(model, [IDS]), capacity=64, block_size=4, compiler=compiler)
    found = caches_of(generator.predictor.program)
    assert [(c.kind, c.layer, c.block) for c in found] == [("recurrent", i, (4, 1, WIDTH)) for i in (0, 0, 1)]
    rows = {0: [], 1: []}
    for (a, b), (c, d) in (((0, 5), (0, 1)), ((5, 6), (1, 9)), ((6, 12), (9, 12))):
        places, owners = [*range(a, b), *range(c, d)], [0] * (b - a) + [1] * (d - c)
        made = generator.step([*ids[0, a:b], *ids[1, c:d]], places, owners)
        rows[0].append(made[: b - a])
        rows[1].append(made[b - a :])
    close = {"rtol": 0, "atol": 1e-6 * np.abs(want).max()}
    np.testing.assert_allclose(np.concatenate(rows[0]), want[0], **close)
    np.testing.assert_allclose(np.concatenate(rows[1]), want[1], **close)
    again = generator.step(ids[0, 3:12], range(3, 12), [0] * 9)
    np.testing.assert_allclose(again, want[0, 3:], **close)
    if compiler != "reference":  # whose products are numpy's
        np.testing.assert_array_equal(again, np.concatenate(rows[0])[3:])


def test_first_states_are_given_by_row():
    """And are used for every token besides."""
    model = Recurrent(lambda y, last, first: y + first.unsqueeze(1))
    model.eval()
    loaded = export_program(model, [IDS, InputSpec([None, WIDTH], "float32", "first")])
    program = make_incremental(loaded.program, 4)
    caches = {cache.name: cache.allocate(3) for cache in caches_of(program)}
    predictor = Predictor(LoadedProgram(program, {**loaded.states, **caches}), "reference")
    first = np.random.default_rng(1).standard_normal((2, WIDTH)).astype(np.float32)
    given = {
        "tokens": [1, 2, 3, 4],
        "positions": [0, 1, 0, 1],
        "starts": [0, 2, 4],
        "outputs": range(4),
        "first": first,
    }
    (made,) = predictor.run(**given, block_tables=[[1], [2]])
    want = model(paddle.to_tensor([[1, 2], [3, 4]]), paddle.to_tensor(first)).numpy()
    np.testing.assert_allclose(made, want.reshape(4, WORDS), rtol=0, atol=1e-6 * np.abs(want).max())


def _counted(y, last, first):
    times = paddle.to_tensor(0)
    while times < 3:
        y, times = paddle.tanh(y), times + 1
    return y


@pytest.mark.parametrize(
    ("use", "direction", "message"),
    [
        (None, "bidirect", r"control.scan at .* is no loop from the beginning of the text"),
        (lambda y, last, first: y + last[0].unsqueeze(1), "forward", r"control.scan at .* carries last, which grows"),
        (lambda y, last, first: y + y.mean(0, keepdim=True), "forward", r"reduce_sum at .* reduces over the batch"),
        (_counted, "forward", r"control.while at .*test_recurrent_models.py.* takes tokens"),
    ],
    ids=["backwards", "last state", "batch", "while"],
)
def test_what_is_not_served_is_refused_with_its_line(use, direction, message):
    model = Recurrent(use or (lambda y, last, first: y), direction)
    model.eval()
    with pytest.raises(IncrementalError, match=message):
        make_incremental(export_program(model, [IDS]).program)

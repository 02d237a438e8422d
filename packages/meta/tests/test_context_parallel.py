"""Sequences split along a mesh dimension: the losses and gradients of one process, heads split or keys gathered."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.nn import functional as F
from argosy.nn.split_sequences import zigzag_order
from argosy_autoparallel.counting import count_collectives

ROWS, LENGTH, HEADS, WIDTH, WORDS = 2, 8, 4, 16, 12


class Attend(nn.Layer):
    def forward(self, q, k, v, backend=None):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, backend=backend)


class Model(nn.Layer):
    """Grouped heads, positions among the inputs."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.inward, self.outward = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WORDS)
        self.attend = Attend()

    def forward(self, ids, places, labels):
        x = self.words(ids) + self.places(places)
        parts = self.inward(x).reshape([ROWS, LENGTH, 2 * HEADS, -1]).split([HEADS, HEADS // 2, HEADS // 2], axis=2)
        mixed = self.attend(*parts).reshape([ROWS, LENGTH, WIDTH])
        return F.cross_entropy(self.outward(x + mixed), labels)


def train(backend=None, static=False):
    paddle.seed(1)
    model = Model()
    optimizer = paddle.optimizer.SGD(
        0.5, parameters=model.parameters()
    )  # of keys the bias has no gradient but rounding
    ids, labels = np.random.default_rng(0).integers(0, WORDS, (2, ROWS, LENGTH))
    given = [paddle.to_tensor(x) for x in (ids, np.tile(np.arange(LENGTH), (ROWS, 1)), labels)]
    if backend is not None:
        mesh = dist.ProcessMesh([0, 1], ["sep"])
        plan = {"": dist.PrepareContextParallel(backend), "attend": dist.ContextParallel(backend)}
        model, optimizer = dist.parallelize(model, optimizer, mesh, {"cp_config": {"parallelize_plan": plan}})
        given = [dist.shard_tensor(x, mesh, [dist.Replicate()]) for x in given]

    def step(*given):
        loss = model(*given)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    losses = [float(run(*given)) for _ in range(2)]
    with count_collectives() as counts, paddle.no_grad():
        losses.append(float(model(*given)))
    return losses, {name: p.numpy() for name, p in model.named_parameters()}, counts.calls


@pytest.fixture(scope="module")
def expected():
    return run_ranks(train, 1)[0]


@pytest.mark.parametrize("static", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("backend", ["p2p", "all2all"])
def test_split_sequences_train_as_one_process_does(expected, backend, static):
    for losses, parameters, calls in run_ranks(lambda: train(backend, static), 2):
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        for name, value in expected[1].items():
            np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        moved = {"send": 2} if backend == "p2p" else {"all_to_all": 4}
        assert {name: n for name, n in calls.items() if name != "all_reduce"} == moved  # queries stay, of "p2p"


@pytest.mark.parametrize(
    ("shape", "placements", "causal", "dtype", "more", "static"),
    [
        ((1, 3), [0, 1], True, "float32", {}, False), ((2, 2), [2, 1], True, "float64", {}, False),
        ((2, 2), [0, 1], False, "bfloat16", {}, False), ((1, 2), [0, 1], True, "float64", {"dropout_p": 0.3}, True),
        ((2, 2), [0, 1], False, "float64", {"dropout_p": 0.5, "softcap": 2.0, "sinks": [0.5, -1.0, 2.0, 0.0]}, True),
        ((2, 2), [2, 1], True, "float64", {"dropout_p": 0.2, "softcap": 1.5, "sinks": [0.5, -1.0, 2.0, 0.0]}, False),
    ],
    ids=["three ranks", "heads split", "rows split, no mask", "dropout", "all, rows split", "all, heads split"],
)  # fmt: skip
def test_keys_and_values_go_round(shape, placements, causal, dtype, more, static):
    """Results and gradients of one process, of whatever else is split, with dropout, too; no rank has all keys."""
    rng, ranks = np.random.default_rng(0), int(np.prod(shape))
    lengths = [12, 12 if causal else 8, 12 if causal else 8]
    arrays = [rng.standard_normal((2, n, heads, 4)) for n, heads in zip(lengths, (4, 2, 2), strict=True)]
    orders = [zigzag_order(n, shape[1]) for n in lengths]

    def program(split):
        given = [paddle.to_tensor(x, dtype=dtype) for x in arrays]
        if split:
            mesh = dist.ProcessMesh(np.arange(ranks).reshape(shape), ["other", "sep"])
            lie = [dist.Shard(axis) for axis in placements]
            given = [
                dist.shard_tensor(paddle.to_tensor(x[:, o], dtype=dtype), mesh, lie)
                for x, o in zip(arrays, orders, strict=True)
            ]
        sinks = paddle.to_tensor(more.get("sinks", [0.0]), dtype=dtype)
        for x in (*given, sinks):
            x.stop_gradient = False
        paddle.seed(7)
        further = {**more, "sinks": sinks} if "sinks" in more else more

        def step(*given):
            out = F.scaled_dot_product_attention(*given, is_causal=causal, backend="p2p" if split else None, **further)
            out.cast("float64").square().sum().backward()
            return out.detach()

        run = paddle.jit.to_static(step, full_graph=True) if split and static else step
        with count_collectives() as counts:
            out = run(*given)
        assert not split or counts.calls["send"] == 6 * shape[1] - 4
        assert "all_to_all" not in counts.calls
        assert counts.bytes.get("all_gather", 0) <= 8 * len(more.get("sinks", ()))  # the gradient of split heads
        found = [x.cast("float64").numpy() for x in (out, *(x.grad for x in given))]
        return found, sinks.grad.numpy() if "sinks" in more else 0

    ((whole, of_sinks),) = run_ranks(lambda: program(False), 1)
    near = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 3e-2}[dtype]
    for found, sinks in run_ranks(lambda: program(True), ranks):
        np.testing.assert_allclose(sinks, of_sinks, rtol=1e-10)
        for mine, expected, order in zip(found, whole, [orders[0], *orders], strict=True):
            np.testing.assert_allclose(mine, expected[:, order], rtol=near, atol=near * np.abs(expected).max())


def test_blocks_of_a_rank_leave_all_ranks_as_much():
    """Of the pairs that a causal mask keeps each rank has an equal share."""
    order = zigzag_order(12, 3)
    assert order.tolist() == [0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7]
    assert len(set((order + 1).reshape(3, -1).sum(1))) == 1


def test_what_does_not_fit_is_named():
    q = paddle.ones([1, 4, 2, 2])
    with pytest.raises(ValueError, match="a sequence of 6 is not 4 equal blocks"):
        zigzag_order(6, 2)
    with pytest.raises(ValueError, match="backend is 'p2p' or 'all2all', not 'ring'"):
        dist.ContextParallel("ring")
    with pytest.raises(ValueError, match="a mesh with a dimension 'sep', not on None"):
        F.scaled_dot_product_attention(q, q, q, backend="p2p")
    with pytest.raises(ValueError, match="no mask but is_causal"):
        F.scaled_dot_product_attention(q, q, q, q, backend="p2p")

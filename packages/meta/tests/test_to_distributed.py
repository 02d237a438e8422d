"""``to_distributed`` and role makers: older ways of saying that all ranks train together."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
import argosy.nn.functional as F
from argosy import nn
from argosy.distributed import fleet
from argosy.distributed.auto_parallel.high_level_api import ToDistributedConfig
from argosy.distributed.debug import run_ranks
from argosy.io import DataLoader, TensorDataset

WIDTH, HEADS = 8, 2


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).reshape([*x.shape[:2], HEADS, -1]) for f in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.perceptron(self.second(x))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, WIDTH)
        self.blocks = nn.LayerList([Block() for _ in range(2)])
        self.head = nn.Linear(WIDTH, 11)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(ranks=None, sequences=False):
    """Losses of an epoch, and how some weights lie."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    tokens = paddle.to_tensor(rng.integers(0, 11, (8, 6)))
    model, loader = Model(), DataLoader(TensorDataset([tokens]), batch_size=4)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
    if ranks:
        config = ToDistributedConfig()
        config.sequence_parallel = sequences
        model, optimizer, loader = dist.to_distributed(model, optimizer, loader, ranks, config=config)
    losses = []
    for _ in range(2):
        for (x,) in loader() if ranks else loader:
            loss = F.cross_entropy(model(x).reshape([-1, 11]), x.reshape([-1]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
    attention = model.blocks[0].attention
    return losses, [w.placements for w in (attention.q.weight, attention.out.weight, model.head.weight)]


@pytest.mark.parametrize(("ranks", "sequences"), [(2, False), (4, False), (4, True)])
def test_a_model_without_annotations_trains_on_all_ranks(ranks, sequences):
    """Copies, and copies of pairs that share products; losses are those of one process."""
    expected, _ = run_ranks(train, 1)[0]
    whole, columns, rows = dist.Replicate(), dist.Shard(1), dist.Shard(0)
    laid = [[whole]] * 3 if ranks == 2 else [[whole, columns], [whole, rows], [whole, whole]]
    for losses, placements in run_ranks(lambda: train(ranks, sequences), ranks):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert placements == laid


def test_what_to_distributed_does_not_take_is_refused():
    model = nn.Linear(2, 2)
    optimizer = paddle.optimizer.SGD(parameters=model.parameters())
    with pytest.raises(TypeError, match="takes a Layer, not int"):
        dist.to_distributed(3, optimizer, [], 2)
    with pytest.raises(ValueError, match="device_num is a number from 1, not 0"):
        dist.to_distributed(model, optimizer, [], 0)


def test_role_makers_say_that_all_ranks_are_workers():
    def program():
        fleet.init(fleet.PaddleCloudRoleMaker(is_collective=True))
        role = fleet.UserDefinedRoleMaker(is_collective=True, current_id=dist.get_rank(), worker_num=2)
        with pytest.raises(NotImplementedError, match="parameter servers are not implemented"):
            fleet.PaddleCloudRoleMaker()
        with pytest.raises(ValueError, match="worker_num is 2 as this job was launched, not 3"):
            fleet.UserDefinedRoleMaker(is_collective=True, worker_num=3)
        return repr(role), fleet.worker_index()

    assert run_ranks(program, 2)[1] == ("UserDefinedRoleMaker(rank 1 of 2)", 1)


def test_operators_are_split_by_names_of_dimensions():
    """What goes in and comes out lies as the specifications say, with the values of one process."""

    def program():
        mesh = dist.auto_parallel.create_mesh([("x", 2), ("y", 1)])
        assert dist.get_mesh() is mesh
        x = paddle.arange(8, dtype="float32").reshape([4, 2])
        add = dist.shard_op(paddle.add, None, [["x", "y"], None], [[None, "x"]])
        with pytest.raises(ValueError, match="in_shard_specs has 2 specifications for 1 tensors"):
            add(x)
        y = add(x, x)
        first, second = dist.shard_op(paddle.split, mesh, num_or_sections=2, axis=0)(x)
        assert first.placements == [dist.Replicate(), dist.Replicate()]
        return y.placements, y.numpy().tolist(), second.numpy().tolist()

    whole = (2 * np.arange(8.0).reshape(4, 2)).tolist()
    expected = [dist.Shard(1), dist.Replicate()], whole, [[4.0, 5.0], [6.0, 7.0]]
    assert run_ranks(program, 2) == [expected] * 2
    with pytest.raises(ValueError, match="give process_mesh, or call set_mesh first"):
        run_ranks(lambda: dist.shard_op(paddle.add), 1)

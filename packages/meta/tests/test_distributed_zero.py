"""ZeRO's stages in compiled steps: losses of one process, few collectives, parameters that are gathered for a time."""

from functools import partial
from importlib import import_module

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy_autoparallel.counting import count_collectives
from argosy_autoparallel.passes.combine_collectives import CombineCollectives

pytestmark = pytest.mark.usefixtures("verified_passes")

WIDTH, LAYERS, ROWS = 144, 6, 256
WEIGHT = 4 * WIDTH * WIDTH


def train(stage, overlap=False):
    """Losses of two updates, each of two batches, and of the training program of a rank the collectives and bytes."""
    paddle.seed(0)
    model = nn.Sequential(*[layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())])
    optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
    rng, losses = np.random.default_rng(0), []
    batches = [rng.standard_normal((ROWS, WIDTH)).astype(np.float32) for _ in range(4)]
    if stage is None:
        for number, batch in enumerate(map(paddle.to_tensor, batches), 1):
            loss = nn.functional.mse_loss(model(batch), batch)
            (loss / 2).backward()
            losses.append(float(loss))
            if number % 2 == 0:
                optimizer.step()
                optimizer.clear_grad()
        return losses
    mesh = dist.ProcessMesh([0, 1], ["dp"])
    dist.shard_layer(model, mesh)
    strategy = dist.Strategy({
        "sharding": {"enable": True, "stage": stage, "degree": 2, "enable_overlap": overlap},
        "gradient_merge": {"enable": True, "k_steps": 2},
    })  # fmt: skip
    step = dist.to_static(model, None, nn.MSELoss(), optimizer, strategy)
    for batch in batches:
        x = dist.shard_tensor(batch, mesh, [dist.Shard(0)])
        losses.append(float(step(x, x)))
    executable = step._steps["train"].compiled[-1].executable
    program = step.dist_main_program()
    found = [op.attributes.get("collective", op.kind) for op in program.walk() if op.dialect == "prim"]
    states = sum(4 * int(np.prod(s.argument.shape)) for s in program.states)
    return losses, found, executable.report()["arena_bytes"], states


@pytest.fixture(scope="module")
def expected():
    return run_ranks(lambda: train(None), 1)[0]


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("overlap", [True, False], ids=["overlapped", "blocking"])
def test_compiled_zero_steps_are_those_of_gradient_accumulation(expected, overlap, monkeypatch):
    """In a few buckets, of two layers where nothing overlaps. Parameters of ZeRO 3 are whole only while they are used,
    and gathered ahead only where that takes no more memory: the arena is no larger than with ZeRO 1, and with states a
    rank holds much less. Gradients are scattered within the backward pass: of their sums few are held whole."""
    passes = partial(CombineCollectives, sums=3 * WEIGHT)
    monkeypatch.setattr(import_module("argosy_autoparallel.partition"), "CombineCollectives", passes)
    arenas, buckets = {}, LAYERS + 1 if overlap else LAYERS // 2  # weights alone, biases together; two of both
    for stage in (1, 3):
        ranks = run_ranks(lambda stage=stage: train(stage, overlap), 2)
        for losses, *_ in ranks:
            np.testing.assert_allclose(losses, expected, rtol=1e-5)
        _, found, arena, states = ranks[0]
        arenas[stage] = arena, arena + states
        gathers, scatters = (sum(each.startswith(kind) for each in found) for kind in ("all_gather", "reduce_scatter"))
        assert scatters == buckets
        if stage == 1:
            assert gathers == buckets
        else:
            assert LAYERS + 2 < gathers <= 2 * LAYERS  # weights again, but for those that the backward pass finds
    assert arenas[3][0] <= arenas[1][0] < (0.9 * LAYERS + 3) * WEIGHT  # what layers give, and three matrices
    assert arenas[3][1] < arenas[1][1] - 0.4 * LAYERS * WEIGHT


def test_hybrid_shards_are_copied_between_groups():
    """Parameters and states are split within groups of two ranks, of which there are two: losses of one process, whose
    gradients are scattered within groups and added up between them, each rank its half."""

    def program(shape):
        paddle.seed(0)
        model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32))
        optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
        mesh = dist.ProcessMesh(np.arange(int(np.prod(shape))).reshape(shape), ["copies", "shards"])
        dist.shard_layer(model, mesh)
        optimizer = dist.shard_optimizer(optimizer, dist.ShardingStage3("shards"))

        @paddle.jit.to_static(full_graph=True)
        def step(x):
            loss = nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        losses, rng = [], np.random.default_rng(0)
        for _ in range(3):
            x = dist.shard_tensor(rng.standard_normal((8, 32), np.float32), mesh, [dist.Shard(0)] * 2)
            with count_collectives() as counts:
                losses.append(float(step(x)))
        held = sum(p._local_value().size for p in model.parameters())
        return losses, counts.total_bytes, held, sum(p.size for p in model.parameters())

    ((wanted, _, _, _),) = run_ranks(lambda: program((1, 1)), 1)
    for losses, sent, held, whole in run_ranks(lambda: program((2, 2)), 4):
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        assert held == whole / 2
        assert sent <= 4 * whole * (0.5 + 0.5 + 0.5 + 0.5) + 64  # gathers twice at most, scatters, sums of halves

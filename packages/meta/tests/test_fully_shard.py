"""``fsdp.fully_shard``: parameters split over ranks train as one process does."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from argosy_autoparallel.counting import count_collectives

RNG = np.random.default_rng(0)
BATCHES = [(RNG.standard_normal((8, 6), np.float32), RNG.standard_normal((8, 3), np.float32)) for _ in range(3)]


def layers():
    paddle.seed(7)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))


def train(model, optimizer, batches, static=False):
    def step(x, y):
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    return [float(run(*batch)) for batch in batches]


def adam(model):
    return paddle.optimizer.AdamW(0.05, parameters=model.parameters())


@pytest.fixture(scope="module")
def expected():
    model = layers()
    return train(model, adam(model), [tuple(map(paddle.to_tensor, b)) for b in BATCHES]), values(model)


def values(model):
    return [p.numpy() for p in model.parameters()]


def check(results, expected):
    losses, parameters = expected
    np.testing.assert_allclose(np.mean([found for found, _ in results], 0), losses, rtol=1e-5)
    for _, found in results:
        for ours, theirs in zip(found, parameters, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("case", ["before", "after", "whole", "static"])
def test_ranks_with_batches_of_their_own(expected, case):
    def main():
        model, rank, ranks = layers(), dist.get_rank(), dist.get_world_size()
        for p in model.parameters():
            p.set_value(p.numpy() + rank)  # all begin with the first rank's
        optimizer = adam(model) if case != "after" else None
        sharded = fully_shard(model, reshard_after_forward=False if case == "whole" else None)
        optimizer = optimizer or adam(model)
        own = [tuple(paddle.to_tensor(part[rank::ranks]) for part in batch) for batch in BATCHES]
        losses = train(sharded, optimizer, own, case == "static")
        moments = [x for name, x in optimizer.state_dict().items() if "moment" in name]
        assert moments
        assert all(x._local_value().size < x.size for x in moments)
        return losses, values(model)

    check(run_ranks(main, 2), expected)


@pytest.mark.parametrize("static", [False, True])
def test_distributed_inputs_on_a_mesh(expected, static):
    def main():
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        model = layers()
        assert fully_shard(model, mesh=mesh) is model
        assert all(p.placements == [dist.Shard(0)] for p in model.parameters())
        batches = [tuple(dist.shard_tensor(part, mesh, [dist.Shard(0)]) for part in batch) for batch in BATCHES]
        return train(model, adam(model), batches, static), values(model)

    check(run_ranks(main, 2), expected)


def test_parameters_are_gathered_again_for_the_backward_pass():
    def main(again):
        model = fully_shard(layers(), reshard_after_forward=again)
        with count_collectives() as forward:
            loss = model(paddle.ones([2, 6])).sum()
        with count_collectives() as backward:
            loss.backward()
        return forward.calls.get("all_gather", 0), backward.calls.get("all_gather", 0)

    assert run_ranks(lambda: main(True), 2)[0] == (4, 1)  # the last weight, for the gradient of what it is given
    assert run_ranks(lambda: main(False), 2)[0] == (4, 0)


def test_placements_and_what_stays_whole():
    def main():
        model, mesh = layers(), dist.ProcessMesh([0, 1], ["dp"])
        fully_shard(
            model,
            mesh=mesh,
            shard_placement_fn=lambda p: dist.Shard(1) if p.ndim == 2 and p.shape[1] > 2 else None,
            ignored_params=[model[2].weight],
        )
        return [p.placements[0] for p in model.parameters()]

    first, bias, last, other = run_ranks(main, 2)[0]
    assert first == dist.Shard(1)
    assert all(p.is_replicated() for p in (bias, last, other))


def test_what_does_not_fit_is_named():
    def main():
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        with pytest.raises(ValueError, match=r"Shard\(dim=2\).*shape"):
            fully_shard(layers(), mesh=mesh, shard_placement_fn=lambda p: dist.Shard(2))
        with pytest.raises(TypeError, match="takes a Layer"):
            fully_shard(paddle.ones([2]), mesh=mesh)
        with pytest.raises(NotImplementedError, match=r"float16.*amp\.decorate"):
            fully_shard(layers(), mp_policy=MixedPrecisionPolicy(param_dtype="float16"))

    run_ranks(main, 2)

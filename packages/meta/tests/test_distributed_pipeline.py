"""Pipelines of captured models: under every schedule the losses and parameters of one process that accumulates."""

import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import Strategy, debug
from argosy.distributed.launch.process_manager import NoMpi, command
from argosy.distributed.pipeline.marks import SplitPoint, split_model, stages_of_layers
from argosy.models import GPT, GPTConfig
from argosy.models.configuration import (
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    ExpertsConfig,
    FeedForwardConfig,
    RotaryConfig,
)
from argosy.models.decoder import CausalLM

run_ranks = partial(debug.run_ranks, timeout=600)
STEPS, LAYERS, ROWS = 2, 4, 8


class Decoder(GPT):
    """A GPT that takes tokens alone: what else there is in a batch are labels."""

    def forward(self, ids):
        return super().forward(ids)


def built(tied=False, layers=LAYERS):
    paddle.seed(0)
    model = Decoder(GPTConfig(64, 16, 32, layers, 2, dropout=0.1, tied=tied))
    clip = nn.ClipGradByGlobalNorm(0.5)
    # With its own epsilon, gradients that are all rounding make steps of 0.01 in either direction.
    optimizer = paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=model.parameters(), grad_clip=clip)
    return model, optimizer


def batches(rows=ROWS):
    rng = np.random.default_rng(0)
    return [[paddle.to_tensor(rng.integers(0, 64, (rows, 16))) for _ in range(2)] for _ in range(STEPS)]


def loss_of(logits, labels):
    return nn.functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels.reshape([-1]))


@cache
def expected(count=4, rows=ROWS, tied=False, layers=LAYERS):
    """Losses and parameters of one process that accumulates the gradients of microbatches."""

    def program():
        model, optimizer = built(tied, layers)
        losses, each = [], -(-rows // count)
        for x, y in batches(rows):
            total = 0.0
            for i in range(count):
                loss = loss_of(model(x[i * each : (i + 1) * each]), y[i * each : (i + 1) * each])
                (loss / count).backward()
                total += float(loss) / count
            optimizer.step()
            optimizer.clear_grad()
            losses.append(total)
        return losses, {name: p.numpy() for name, p in model.named_parameters()}

    return run_ranks(program, 1)[0]


def train(schedule, points, count=4, rows=ROWS, tied=False, memory=-1):
    """What a rank sees: the losses, and its parameters in the end."""
    model, optimizer = built(tied, layers_of(points))
    split_model(model, dict.fromkeys(points, SplitPoint.END))
    chunks = 2 if schedule == "VPP" else 1
    pipeline = {"enable": True, "schedule_mode": schedule, "accumulate_steps": count,
                "micro_batch_size": -(-rows // count), "vpp_degree": chunks, "memory_limit_times": memory}  # fmt: skip
    step = dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))
    losses = [float(step(x, y)) for x, y in batches(rows)]
    held = {name: p._local_value().numpy() for name, p in model.named_parameters() if p.payload.is_held}
    return losses, held


def check(results, wanted):
    losses, parameters = wanted
    for mine, held in results:
        np.testing.assert_allclose(mine, losses, rtol=1e-5)
        for name, value in held.items():
            np.testing.assert_allclose(value, parameters[name], rtol=1e-4, atol=1e-4, err_msg=name)  # of steps of 0.01
        assert len(held) < len(parameters)
    assert set().union(*(held for _, held in results)) == parameters.keys()


HALVES = ("blocks.0",)
QUARTERS = ("blocks.0", "blocks.1", "blocks.2")
CASES = {
    "FThenB": ("FThenB", HALVES, 2), "1F1B": ("1F1B", HALVES, 2), "Eager1F1B": ("Eager1F1B", HALVES, 2),
    "ZBH1": ("ZBH1", HALVES, 2), "VPP, 2 chunks": ("VPP", QUARTERS, 2), "ZBVPP": ("ZBVPP", QUARTERS, 2),
    "DualPipeV": ("DualPipeV", QUARTERS, 2), "ZBH1, searched": ("ZBH1", HALVES, 2, 2),
    "ZBVPP, searched": ("ZBVPP", QUARTERS, 2, 1),
    "FThenB of 4": ("FThenB", QUARTERS, 4), "1F1B of 4": ("1F1B", QUARTERS, 4),
    "Eager1F1B of 4": ("Eager1F1B", QUARTERS, 4), "ZBH1 of 4": ("ZBH1", QUARTERS, 4),
    "data parallel": ("1F1B", HALVES, 4), "uneven stages": ("1F1B", ("blocks.2",), 2),
}  # fmt: skip


def layers_of(points):
    """Two where those make stages: what more of them compile to is the same again."""
    return 2 if points == HALVES else LAYERS


SOME = {"FThenB", "ZBH1", "VPP, 2 chunks", "DualPipeV", "ZBVPP, searched", "1F1B of 4", "uneven stages"}
assert CASES.keys() >= SOME


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.exhaustive] * (case not in SOME)) for case in CASES]
)
def test_schedules_compute_what_one_process_does(case):
    """Dropout and clipping by the global norm are on."""
    schedule, points, ranks, *memory = CASES[case]
    check(
        run_ranks(lambda: train(schedule, points, memory=(memory or [-1])[0]), ranks),
        expected(layers=layers_of(points)),
    )


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("schedule", ["ZBH1", "1F1B"])
def test_stages_share_a_weight(schedule):
    """The table of tokens is that of the head: both stages have it, and its gradient is the sum of theirs."""
    results = run_ranks(lambda: train(schedule, HALVES, tied=True), 2)
    assert all("tokens.weight" in held for _, held in results)
    check(results, expected(tied=True, layers=2))


class Llama(CausalLM):
    """A Llama that takes tokens alone."""

    def forward(self, ids):
        return super().forward(ids)


def mixture(split):
    """A block without experts and one with four, of which tokens take two and each of two ranks has two."""
    paddle.seed(0)
    attention = AttentionConfig(2, 1, 8, RotaryConfig(8))
    blocks = [BlockConfig(attention, part) for part in (FeedForwardConfig(8), ExpertsConfig(4, 2, 8))]
    model = Llama(DecoderConfig(64, 16, 16, tuple(blocks)))
    if split:
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["pp", "ep"])
        for weight in model.model.layers[1].mlp.experts.parameters():
            dist.shard_tensor(weight, mesh.get_mesh_with_dim("pp", 1), [dist.Shard(0)])
        dist.parallelize(model, None, mesh, {"pp_config": {"split_spec": {"model.layers.0": SplitPoint.END}}})
    return model, paddle.optimizer.SGD(0.5, parameters=model.parameters())


def test_a_mixture_of_experts_is_a_pipeline_of_ranks_with_experts_of_their_own():
    """Two stages of two ranks each: losses and parameters of one process."""

    def program(split):
        model, optimizer = mixture(split)
        pipeline = {"enable": split, "accumulate_steps": 4}
        step = dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))
        losses = [float(step(x, y)) for x, y in batches()]
        held = {}
        for name, p in model.named_parameters():
            if split and p.payload.is_held:
                assert p._local_value().shape[0] == (2 if "experts" in name else p.shape[0])
                p = dist.reshard(p, p.process_mesh, [dist.Replicate()])._local_value()
            if not split or p.process_mesh is None:
                held[name] = p.numpy()
        return losses, held

    check(run_ranks(lambda: program(True), 4), run_ranks(lambda: program(False), 1)[0])


class TwoTowers(nn.Layer):
    """An encoder of pictures and one of tokens, whose results meet in one space (Radford et al., 2021)."""

    def __init__(self):
        super().__init__()
        self.pictures = nn.Sequential(nn.Conv2D(1, 4, 3, 2), nn.GELU(), nn.Flatten(), nn.Linear(36, 8))
        self.tokens = nn.Sequential(nn.Embedding(64, 8), nn.TransformerEncoderLayer(8, 2, 16, 0.1), nn.Linear(8, 8))
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.0))

    def forward(self, pictures, tokens):
        one = nn.functional.normalize(self.pictures(pictures))
        other = nn.functional.normalize(self.tokens(tokens).mean(1))
        return self.scale * one @ other.T


def contrast(similarities, places):
    """Each picture finds its text among those of its microbatch, and each text its picture."""
    cross_entropy = nn.functional.cross_entropy
    return (cross_entropy(similarities, places) + cross_entropy(similarities.T, places)) / 2


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize(("schedule", "ranks"), [("ZBH1", 4), ("1F1B", 2)], ids=["stages and copies", "stages"])
def test_two_towers_are_stages(schedule, ranks):
    """Losses and parameters of one process; copies contrast the rows of a microbatch with those of all."""

    def program(split):
        paddle.seed(0)
        model, rng, losses = TwoTowers(), np.random.default_rng(0), []
        optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
        if split:
            split_model(model, {"pictures": SplitPoint.END})
        pipeline = {"enable": split, "schedule_mode": schedule, "accumulate_steps": 2}
        merge = {"enable": not split, "k_steps": 2}
        step = dist.to_static(
            model, None, contrast, optimizer, Strategy({"pipeline": pipeline, "gradient_merge": merge})
        )
        for _ in range(STEPS):
            rows = rng.standard_normal((ROWS, 1, 8, 8), np.float32), rng.integers(0, 64, (ROWS, 5)), np.arange(ROWS) % 4
            given = [paddle.to_tensor(x) for x in rows]
            halves = [given] if split else zip(*(paddle.split(x, 2) for x in given), strict=True)
            losses.append(np.mean([float(step(*half)) for half in halves]))
        return losses, {
            name: (p._local_value() if split else p).numpy()
            for name, p in model.named_parameters()
            if not split or p.payload.is_held
        }

    check(run_ranks(lambda: program(True), ranks), run_ranks(lambda: program(False), 1)[0])


def test_the_last_microbatch_may_be_smaller():
    """A batch of 7 in microbatches of 2."""
    check(run_ranks(lambda: train("1F1B", HALVES, rows=7), 2), expected(rows=7, layers=2))


PLAN = {
    "blocks.*.wide": dist.ColWiseParallel(), "blocks.*.narrow": dist.RowWiseParallel(),
    r"blocks\.\d+\.attention\.outward": dist.RowWiseParallel(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "tied", "level"),
    [
        ((2, 2, 1), False, 3),
        ((2, 1, 2), True, 0),
        *[
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in [((2, 1, 1), True, 0), ((2, 2, 1), True, 1), ((2, 2, 2), False, 2)]
        ],
    ],
)
def test_pipelines_of_meshes(shape, tied, level):
    """``parallelize`` along pp, dp and mp: batches split along dp, products along mp, a weight on both stages; states
    and parameters split along dp by ZeRO's stages."""

    def program():
        model, optimizer = built(tied, 2)
        mesh = dist.ProcessMesh(np.arange(np.prod(shape)).reshape(shape), ["pp", "dp", "mp"])
        config = {
            "pp_config": {"split_spec": "blocks"}, "mp_config": {"parallelize_plan": PLAN},
            "dp_config": {"sharding_level": level},
        }  # fmt: skip
        model, optimizer = dist.parallelize(model, optimizer, mesh, config)
        pipeline = {"enable": True, "schedule_mode": "1F1B", "accumulate_steps": 4}
        step = dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))
        losses = []
        for x, y in batches():
            order = (
                np.arange(ROWS).reshape(4, shape[1], -1).transpose(1, 0, 2).ravel()
            )  # so that microbatches are those
            stages = [mesh.get_mesh_with_dim("pp", stage) for stage in range(2)]
            given = [dist.shard_tensor(t[order], m, [dist.Shard(0)]) for t, m in zip((x, y), stages, strict=True)]
            losses.append(float(step(*given)))
        held = {
            name: dist.reshard(p, p.process_mesh, [dist.Replicate()] * p.process_mesh.ndim)._local_value().numpy()
            for name, p in model.named_parameters()
            if p.payload.is_held
        }
        sizes = [sum(p._local_value().size for p in model.parameters() if p.payload.is_held)]
        moments = [x for kind in optimizer._accumulators.values() for x in kind.values() if x.is_dist()]
        sizes.append(sum(x._local_value().size for x in moments if x.payload.is_held))
        return losses, held, sizes

    results = run_ranks(program, int(np.prod(shape)))
    check([result[:2] for result in results], expected(tied=tied, layers=2))
    for _, held, (parameters, moments) in results:
        whole = sum(value.size for value in held.values())
        assert moments <= 2 * parameters * (1 if level in (0, 3) else 0.51)
        assert parameters <= whole * (0.51 if level == 3 else 1)


def test_peaks_are_parameters_gradients_states_and_values():
    """Of a GPT of width w a block has 12 w^2 + 13 w parameters, the moments of AdamW are twice as many, and the powers
    of its two rates a number each; sums of gradients stay over the microbatches. The check's peak is the list's."""

    def program(stages):
        model, optimizer = built(layers=2)
        pipeline = {"enable": stages > 1, "schedule_mode": "1F1B", "accumulate_steps": 4}
        if stages > 1:
            split_model(model, dict.fromkeys(HALVES, SplitPoint.END))
        step = dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))
        with pytest.raises(RuntimeError, match="the first"):
            step.peak_bytes()
        step(*batches()[0])
        if stages == 1:
            return step.peak_bytes(), step._steps["train"].compiled[-1].executable.report()["arena_bytes"]
        made = next(iter(step._pipeline._steps.values()))
        return step.peak_bytes(), made.verified.peaks[dist.get_rank()].device

    w, words = 32, 64
    block = 12 * w * w + 13 * w
    first, last = (words + 16) * w + block, block + 2 * w + w * words
    (whole, arena), *_ = run_ranks(lambda: program(1), 1)
    numbers = 2 * ROWS * 16  # int64, tokens and labels; the loss is a float32
    each = 4 * (first + last)  # of gradients clear_grad leaves zeros
    assert whole == (each, each, 2 * each + 8, arena + 8 * numbers + 4)
    for (peak, device), count in zip(run_ranks(lambda: program(2), 2), (first, last), strict=True):
        assert peak[:3] == (4 * count, 4 * count, 8 * count + 8)
        assert peak.total == sum(peak) == device + peak.states


@pytest.mark.parametrize(("schedule", "together"), [("1F1B", 2), ("FThenB", 4)])
def test_values_that_a_schedule_holds_together(schedule, together):
    """The second of two linear stages, [2, 16] to [2, 8]: a microbatch is held from receipt to backward pass."""

    def program():
        model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8))
        optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        split_model(model, {"1": SplitPoint.BEGINNING})
        pipeline = {"enable": True, "schedule_mode": schedule, "accumulate_steps": 4, "micro_batch_size": 2}
        step = dist.to_static(model, None, nn.MSELoss(), optimizer, Strategy({"pipeline": pipeline}))
        step(paddle.ones([8, 8]), paddle.ones([8, 8]))
        own = next(iter(step._pipeline._steps.values())).own
        return step.peak_bytes().values - own.pieces["backward", 1].temporary_bytes

    labels, received, outputs, loss, gradient = 4 * 64, 128, 64, 4, 128
    losses, held = (3, 1) if schedule == "1F1B" else (4, 4)  # the next one is received ahead of its forward pass
    expected = labels + together * received + held * outputs + losses * loss + gradient
    assert run_ranks(program, 2)[1] == expected


def test_layers_of_a_class_begin_stages():
    """``vpp_seg_method`` cuts before blocks, evenly; evaluation and prediction run the same stages."""

    def program():
        model, optimizer = built()
        pipeline = {"enable": True, "schedule_mode": "VPP", "accumulate_steps": 4, "pp_degree": 2, "vpp_degree": 2,
                    "vpp_seg_method": "Block"}  # fmt: skip
        step = dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))
        losses = [float(step(x, y)) for x, y in batches()]
        x, y = batches()[0]
        step.eval()
        mean = float(step(x, y))
        step.predict()
        logits = step(x)
        held = {name: p._local_value().numpy() for name, p in model.named_parameters() if p.payload.is_held}
        return losses, held, mean, float(loss_of(logits, y))

    results = run_ranks(program, 2)
    check([result[:2] for result in results], expected())
    for _, _, mean, of_logits in results:
        np.testing.assert_allclose(mean, of_logits, rtol=1e-5)
        np.testing.assert_allclose(mean, results[0][2], rtol=1e-6)


def test_layers_lie_on_the_stage_that_their_order_gives():
    """What follows a cut in the order of the model belongs to the next stage."""
    model, _ = built()
    stages = stages_of_layers(model, {"blocks.1": SplitPoint.END, "norm": SplitPoint.BEGINNING})
    assert (stages["tokens"], stages["blocks.1.narrow"], stages["blocks.2"], stages["norm"]) == (0, 0, 1, 2)


@pytest.mark.parametrize(
    ("points", "count", "schedule", "message"),
    [
        ({"blocks.9": SplitPoint.END}, 4, "1F1B", r"cut at its layers; 'blocks.9' is none of"),
        ({"blocks.1": "end"}, 4, "1F1B", "is SplitPoint.BEGINNING or SplitPoint.END, not 'end'"),
        ({"blocks.1": SplitPoint.END}, 3, "1F1B", "a batch of 8 is not 3 microbatches"),
        (
            {"blocks.0": SplitPoint.END, "blocks.1": SplitPoint.END},
            4,
            "1F1B",
            "a pipeline of 3 ranks does not divide 2",
        ),
        ({"tokens": SplitPoint.BEGINNING}, 4, "1F1B", r"stages \[0\] of 2 have no layers"),
        (
            {"blocks.0": SplitPoint.END, "blocks.1": SplitPoint.BEGINNING},
            4,
            "1F1B",
            r"stages \[1\] of 3 have no layers",
        ),
        (
            dict.fromkeys(QUARTERS, SplitPoint.END),
            1,
            "VPP",
            "must be divisible by 2, got 1",
        ),
        (
            dict.fromkeys(QUARTERS, SplitPoint.END),
            2,
            "DualPipeV",
            "at least 4 microbatches",
        ),
        (dict.fromkeys(QUARTERS[:2], SplitPoint.END), 4, "ZBVPP", "3 stages do not make 2 for each rank"),
        (5, 4, "VPP", "4 layers of class Block do not make 10 stages"),
    ],
)
def test_what_does_not_fit_is_named(points, count, schedule, message):
    """Before the first instruction, on every rank."""

    def program():
        model, optimizer = built()
        pipeline = {"enable": True, "accumulate_steps": count, "schedule_mode": schedule}
        pipeline["vpp_degree"] = 2 if schedule == "VPP" else 1
        if isinstance(points, int):
            pipeline |= {"pp_degree": points, "vpp_seg_method": "Block"}
        else:
            split_model(model, points)
        dist.to_static(model, None, loss_of, optimizer, Strategy({"pipeline": pipeline}))(*batches()[0])

    with pytest.raises((ValueError, TypeError), match=message):
        run_ranks(program, 2)


class Pair(nn.Layer):
    """Two layers, each on its mesh."""

    def __init__(self, meshes):
        super().__init__()
        self.first, self.second, self.meshes = nn.Linear(4, 4), nn.Linear(4, 4), meshes
        for layer, mesh in zip((self.first, self.second), meshes or (), strict=False):
            for parameter in layer.parameters():
                dist.shard_tensor(parameter, mesh, [dist.Replicate()] * mesh.ndim)

    def forward(self, x):
        between = nn.functional.gelu(self.first(x))
        if self.meshes:
            between = dist.reshard(between, self.meshes[1], list(between.placements))
        return self.second(between)


@pytest.mark.parametrize("schedule", ["1F1B", "ZBH1"])
@pytest.mark.parametrize("each", [1, 2])
def test_meshes_are_stages(schedule, each):
    """A model whose author laid it out on two meshes and moves values between them needs no marks."""

    def program(parallel):
        paddle.seed(0)
        meshes = None
        if parallel:
            meshes = [dist.ProcessMesh(list(range(i * each, i * each + each)), ["dp"]) for i in range(2)]
        model = Pair(meshes)
        optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        strategy = {"enable": True, "schedule_mode": schedule, "accumulate_steps": 4}
        step = dist.to_static(
            model, None, nn.MSELoss(), optimizer, Strategy({"pipeline": strategy} if parallel else {})
        )
        losses = []
        for x in np.random.default_rng(0).standard_normal((STEPS, 8, 4)).astype(np.float32):
            given = [paddle.to_tensor(x), paddle.to_tensor(np.ascontiguousarray(x[:, ::-1]))]
            if parallel:
                given = [dist.shard_tensor(t, mesh, [dist.Shard(0)]) for t, mesh in zip(given, meshes, strict=True)]
            losses.append(float(step(*given)))
        held = {n: p._local_value().numpy() for n, p in model.named_parameters() if not parallel or p.payload.is_held}
        return losses, held

    check(run_ranks(lambda: program(True), 2 * each), run_ranks(lambda: program(False), 1)[0])


def _has_mpi():
    try:
        command(1)
    except NoMpi:
        return False
    return True


@pytest.mark.exhaustive(every=2)
@pytest.mark.skipif(not _has_mpi(), reason="no mpiexec")
@pytest.mark.parametrize("schedule", ["1F1B", "ZBH1"])
def test_processes_run_the_same_lists(schedule, tmp_path):
    """Two ranks over MPI compute what one process does, a shared weight, dropout and clipping included."""
    program = str(Path(__file__).parent / "distributed_programs" / "pipeline.py")
    alone = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=3600, check=False)
    options = ["--nproc_per_node", "2", "--log_dir", str(tmp_path), program]
    run = subprocess.run(
        [sys.executable, "-m", "argosy.distributed.launch", *options],
        capture_output=True, text=True, timeout=3600, check=False, env={**os.environ, "SCHEDULE": schedule},
    )  # fmt: skip
    assert run.returncode == alone.returncode == 0, run.stderr + alone.stderr
    losses = [float(line) for line in run.stdout.split()]
    wanted = [float(line) for line in alone.stdout.split()]
    assert len(losses) in (len(wanted), 2 * len(wanted))  # the launcher shows rank 0, or both
    np.testing.assert_allclose(sorted(losses), sorted(wanted * (len(losses) // len(wanted))), rtol=1e-5)

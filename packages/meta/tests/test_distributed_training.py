"""Training on meshes by annotation: the same losses as one process, eagerly and as compiled programs of the ranks."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.distributed.launch.process_manager import NoMpi, command
from argosy.io import BatchSampler, DataLoader, Dataset, DistributedBatchSampler, RandomSampler
from argosy_autoparallel.counting import count_collectives

PROGRAMS = Path(__file__).parent / "distributed_programs"
STEPS = 4


def _has_mpi():
    try:
        return bool(command(2))
    except NoMpi:
        return False


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI: argosy-hwadapt[mpi] is not installed")


def _launch(program: Path, ranks: int, folder: Path):
    options = ["--nproc_per_node", str(ranks), "--log_dir", str(folder / "log")]
    return subprocess.run(
        [sys.executable, "-m", "argosy.distributed.launch", *options, str(program)],
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip


# ---- the published examples

SMALL = {"n100": 4, "n1024": 16, "n4096": 64}


def _example_text(name, **sizes):
    """An example with other numbers in its text ("n100" is 100)."""
    text = (PROGRAMS / name).read_text()
    for number, other in sizes.items():
        text, count = re.subn(rf"\b{number[1:]}\b", str(other), text)
        assert count
    return text


def test_the_annotation_example_splits_over_six_ranks():
    """Rank r of [[0, 2, 4], [1, 3, 5]] holds two rows and the column of its place; shape and value stay global."""

    def program():
        names = {}
        exec(compile((PROGRAMS / "annotation.py").read_text(), "annotation.py", "exec"), names)
        sharded = names["sharded"]
        return sharded.shape, sharded._local_value().tolist(), sharded.tolist()

    for rank, (shape, local, whole) in enumerate(run_ranks(program, 6)):
        row, column = rank % 2, rank // 2
        assert shape == [4, 3]
        assert whole == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
        assert local == [[whole[2 * row + i][column]] for i in range(2)]


@pytest.mark.exhaustive
@needs_mpi
def test_the_annotation_example_runs_under_mpiexec(tmp_path):
    """The same script on six processes; on four it ends with an error that names the mesh and the ranks."""
    path = tmp_path / "annotation.py"
    path.write_text((PROGRAMS / "annotation.py").read_text() + "print(sharded._local_value().tolist())\n")
    done = _launch(path, 6, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    parts = [(tmp_path / "log" / f"workerlog.{rank}").read_text().strip() for rank in range(6)]
    assert parts == ["[[1], [4]]", "[[7], [10]]", "[[2], [5]]", "[[8], [11]]", "[[3], [6]]", "[[9], [12]]"]
    done = _launch(path, 4, tmp_path)
    assert done.returncode == 1
    assert "names rank 5, but 4 ranks were launched" in done.stderr


@needs_mpi
def test_the_hybrid_example_trains_on_eight_ranks(tmp_path):
    """Two meshes, a reshard between them, shard_dataloader and shard_optimizer, through the launcher."""
    path = tmp_path / "hybrid.py"
    text = _example_text("hybrid.py", **SMALL)
    path.write_text(text + "print(step, model.w0._local_value().shape, model.w1._local_value().shape)\n")
    done = _launch(path, 8, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 paddle.Size([16, 32]) paddle.Size([0])\n"
    assert (tmp_path / "log" / "workerlog.7").read_text() == "1 paddle.Size([0]) paddle.Size([32, 16])\n"


@needs_mpi
def test_the_static_loop_runs_on_two_processes(tmp_path):
    """A tensor-parallel model compiled by dist.to_static has the losses of one process on all ranks, with dropout."""

    def losses(text):
        assert text.count("Tensor(") == 6
        return np.array(
            [line for line in text.splitlines() if line[0] in "-0123456789" and "Tensor" not in line], float
        )

    path = PROGRAMS / "static.py"
    alone = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=3600, check=True)
    expected = losses(alone.stdout + alone.stderr)
    assert (len(expected), np.ptp(expected) > 1e-3) == (6, True)
    done = _launch(path, 2, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for rank in range(2):
        found = losses((tmp_path / "log" / f"workerlog.{rank}").read_text())
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@needs_mpi
@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("layouts", ["dp mp sequences", "zero1 zero2 zero3"])
def test_layouts_over_mpi_have_the_losses_of_one_process(tmp_path, monkeypatch, layouts):
    """Two processes share batches, products, sequences, states, gradients or parameters of a compiled step."""

    def losses(ranks):
        done = _launch(PROGRAMS / "layouts.py", ranks, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        texts = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(ranks)]
        assert set(texts) == {texts[0]}
        return {name: list(map(float, row)) for name, *row in map(str.split, texts[0].splitlines())}

    monkeypatch.setenv("LAYOUTS", "dp")
    (expected,) = losses(1).values()
    assert (len(expected), np.ptp(expected) > 1e-3) == (3, True)
    monkeypatch.setenv("LAYOUTS", layouts)
    found = losses(2)
    assert list(found) == layouts.split()
    for row in found.values():
        np.testing.assert_allclose(row, expected, rtol=1e-5)


def _run_example(name, **sizes):
    """The names of an example after it ran on the calling rank."""
    names = {"__name__": "example"}
    exec(compile(_example_text(name, **sizes), name, "exec"), names)
    return names


@pytest.mark.parametrize(
    ("samples", "sizes"),
    [(4, SMALL), pytest.param(100, {}, marks=pytest.mark.soak)],
    ids=["small", "as published"],
)
def test_the_hybrid_example_trains_in_one_process(samples, sizes):
    """The same script on eight ranks of one process; ranks of the first mesh know no loss, and may print it."""

    def program():
        names = _run_example("hybrid.py", **sizes)
        return names["step"], str(names["loss"]), names["loss"].item()

    results = run_ranks(program, 8, timeout=3600)
    for rank, (step, printed, value) in enumerate(results):
        assert step == samples // 2 - 1
        assert printed.endswith("GlobalDenseTensor Not initialized)") == (rank < 4)
        assert value == results[-1][2] if rank >= 4 else value is None
    assert math.isfinite(results[-1][2])


def test_the_compiled_loop_prints_on_every_rank():
    """The dist.to_static loop on two meshes: three losses, falling, shown where they are and not elsewhere."""
    results = run_ranks(lambda: _run_example("compiled.py")["printed"], 4)
    assert [text.split()[0] for text in results[0]] == ["0", "1", "2"]
    assert all(text.endswith("Not initialized)") for printed in results[:2] for text in printed)
    assert results[2] == results[3]
    losses = [float(text.split()[-1].rstrip(")")) for text in results[2]]
    assert losses[2] < losses[0]


class TwoMeshes(nn.Layer):
    """The example's model, small; without meshes it is the same model in one process."""

    def __init__(self, meshes):
        super().__init__()
        self.meshes = meshes
        self.w0, self.w1 = self.create_parameter([6, 8]), self.create_parameter([8, 6])
        if meshes:
            dist.shard_tensor(self.w0, meshes[0], [dist.Replicate(), dist.Shard(1)])
            dist.shard_tensor(self.w1, meshes[1], [dist.Replicate(), dist.Shard(0)])

    def forward(self, x):
        y = paddle.matmul(x, self.w0)
        if self.meshes:
            y = dist.reshard(y, self.meshes[1], [dist.Shard(0), dist.Shard(2)])
        return paddle.matmul(y, self.w1)


def _two_meshes(ranks, static):
    meshes = [dist.ProcessMesh([[i, i + 1], [i + 2, i + 3]], ["x", "y"]) for i in (0, 4)] if ranks > 1 else None
    paddle.seed(7)
    model = TwoMeshes(meshes)
    batches = [[paddle.to_tensor(x)] for x in np.random.default_rng(1).standard_normal((STEPS, 2, 3, 6), np.float32)]
    loader = dist.shard_dataloader(batches, meshes[0], shard_dims="x") if meshes else batches
    optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(0.01, parameters=model.parameters()))
    compiled = dist.to_static(model, loader, paddle.mean, optimizer) if static else None
    losses = []
    for (data,) in loader:
        if compiled is not None:
            loss = compiled(data)
        else:
            loss = paddle.mean(model(data))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        if not meshes or meshes[1].contains(dist.get_rank()):
            losses.append(float(loss))
    return losses


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_two_meshes_train_like_one_process(static):
    """Ranks of the second mesh know losses, which are those of one process."""
    (expected,) = run_ranks(lambda: _two_meshes(1, False), 1)
    for rank, losses in enumerate(run_ranks(lambda: _two_meshes(8, static), 8)):
        assert bool(losses) == (rank >= 4)
        np.testing.assert_allclose(losses, expected[: len(losses)], rtol=1e-5)


# ---- layouts of one mesh


def _make(ranks, stage=None, columns=False):
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.25), nn.Linear(16, 4))
    mesh = dist.ProcessMesh(list(range(ranks)), dim_names=["x"])
    rng = np.random.default_rng(0)
    batches = [[paddle.to_tensor(rng.standard_normal((6, n), np.float32)) for n in (8, 4)] for _ in range(STEPS)]
    if ranks == 1:
        return model, batches, paddle.optimizer.AdamW(0.05, parameters=model.parameters())

    def place(name, layer, mesh):
        if columns and name == "0":
            dist.shard_tensor(layer.weight, mesh, [dist.Shard(1)])

    dist.shard_layer(model, mesh, place)
    optimizer = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    optimizer = dist.shard_optimizer(optimizer, None if stage is None else stage("x"))
    return model, dist.shard_dataloader(batches, meshes=mesh, shard_dims="x"), optimizer


def _train(ranks, static, stage=None, columns=False):
    model, loader, optimizer = _make(ranks, stage, columns)
    criterion, losses = nn.MSELoss(), []
    if static:
        compiled = dist.to_static(model, loader, criterion, optimizer)
        compiled.train()
        losses = [float(compiled(batch)) for batch in loader]
        compiled.eval()
        losses.append(float(compiled(next(iter(loader)))))
        return losses
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    model.eval()
    x, y = next(iter(loader))
    return [*losses, float(criterion(model(x), y))]


@pytest.fixture(scope="module")
def expected():
    """Losses of one process: four training steps and an evaluation."""
    return run_ranks(lambda: _train(1, False), 1)[0]


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("stage", [None, dist.ShardingStage1, dist.ShardingStage2, dist.ShardingStage3])
@pytest.mark.parametrize("columns", [False, True], ids=["data", "tensor"])
def test_losses_do_not_depend_on_the_layout(expected, static, stage, columns):
    """Data and tensor parallelism and ZeRO's stages give the losses of one process, dropout included."""
    for losses in run_ranks(lambda: _train(2, static, stage, columns), 2):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_states_are_split_by_stages():
    """Stage 1 halves the moments, stage 3 the parameters as well; uneven axes too."""

    def sizes(stage):
        model, loader, optimizer = _make(2, stage)
        x, y = next(iter(loader))
        nn.MSELoss()(model(x), y).backward()
        optimizer.step()
        weight = model[0].weight
        moment = optimizer._accumulators["moment1"][weight.name]
        return weight._local_value().shape, moment._local_value().shape, weight.placements, weight.is_parameter

    assert run_ranks(lambda: sizes(None), 2)[0] == ([8, 16], [8, 16], [dist.Replicate()], True)
    assert run_ranks(lambda: sizes(dist.ShardingStage1), 2)[0] == ([8, 16], [4, 16], [dist.Replicate()], True)
    assert run_ranks(lambda: sizes(dist.ShardingStage3), 2)[0] == ([4, 16], [4, 16], [dist.Shard(0)], True)


def test_a_custom_function_places_states():
    """shard_optimizer(optimizer, fn) asks fn(name, parameter, accumulator) for each state."""

    def program():
        model, loader, optimizer = _make(2)
        asked = []

        def place(name, parameter, accumulator):
            asked.append((name, parameter.name))
            return accumulator if name != "moment1" else dist.shard_tensor(accumulator, mesh, [dist.Shard(0)])

        mesh = dist.ProcessMesh([0, 1], ["x"])

        dist.shard_optimizer(optimizer, place)
        x, y = next(iter(loader))
        nn.MSELoss()(model(x), y).backward()
        optimizer.step()
        placed = {t.placements[0] for t in optimizer._accumulators["moment1"].values()}
        return [name for name, _ in asked], placed

    names, placed = run_ranks(program, 2)[0]
    assert names.count("moment1") == names.count("moment2") == 4
    assert placed == {dist.Shard(0)}


def test_a_compiled_step_communicates_what_the_layout_needs():
    """A data-parallel step: one all-reduce for all gradients; stage 1 scatters the sums and gathers the
    new parameters instead.
    """

    def program(stage=None):
        model, loader, optimizer = _make(2, stage)
        compiled = dist.to_static(model, loader, nn.MSELoss(), optimizer)
        batches = list(loader)
        compiled(batches[0])
        with count_collectives() as counts:
            compiled(batches[1])
        return counts.calls, compiled.dist_main_program()

    calls, local = run_ranks(program, 2)[0]
    assert calls == {"all_reduce": 1}, "one for all gradients"
    assert sum(op.name == "prim.all_reduce" for op in local.walk()) == 1
    calls, _ = run_ranks(lambda: program(dist.ShardingStage1), 2)[0]
    assert calls == {"reduce_scatter": 1, "all_gather": 1}


def test_one_process_runs_a_dist_model():
    """Without a launcher and without meshes to_static is the compiled step; a mean as loss leaves labels alone."""
    model, batches, optimizer = _make(1)
    compiled = dist.to_static(model, batches, paddle.mean, optimizer)
    losses = [float(compiled(batch)) for batch in batches]
    assert losses[-1] < losses[0]
    compiled.predict()
    assert compiled(batches[0]).shape == [6, 4]
    assert set(compiled.state_dict("param")) == set(model.state_dict())
    assert any("moment1" in name for name in compiled.state_dict("opt"))


def test_modes_need_what_they_use():
    """Training needs a loss and an optimizer, evaluation a loss."""
    model, _, _ = _make(1)
    with pytest.raises(RuntimeError, match="a loss and an optimizer"):
        dist.to_static(model).train()
    with pytest.raises(RuntimeError, match="needs a loss"):
        dist.to_static(model).eval()
    with pytest.raises(ValueError, match="mode is"):
        dist.to_static(model).state_dict("some")


def test_loaders_place_each_entry_of_a_batch():
    """Entries go to the mesh and along the dimension of their place; dicts by input_keys; own parts when split."""

    def program():
        a, b = dist.ProcessMesh([0, 1], ["x"]), dist.ProcessMesh([[0], [1]], ["p", "q"])
        batch = [paddle.ones([4, 2]), paddle.ones([4])]
        x, y = next(iter(dist.shard_dataloader([batch], [a, b], shard_dims=["x", None])))
        d = next(iter(dist.shard_dataloader([{"k": batch[0], "l": batch[1], "n": 3}], a, ["l", "n", "k"], "x")))
        z = next(iter(dist.shard_dataloader([batch[0]], a, None, 0, is_dataset_splitted=True)))
        return x.placements, y.placements, y.process_mesh == b, d["k"].placements, d["n"], z.shape

    whole = [dist.Replicate(), dist.Replicate()]
    assert run_ranks(program, 2)[1] == ([dist.Shard(0)], whole, True, [dist.Shard(0)], 3, [8, 2])


class Counted(Dataset):
    """Rows of a table; remembers which were asked for."""

    def __init__(self, count, read):
        self.table = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        self.read = read

    def __getitem__(self, i):
        self.read.append(i)
        return self.table[i], np.int64(i)

    def __len__(self):
        return len(self.table)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_rank_reads_its_rows_alone(shuffle):
    """Batches are those of one process in its order, a short last one too; no rank fetches rows of another's part.

    A shuffled order is that of the framework's seed: one process draws it from numpy's unless told, as Paddle does.
    """

    def plain():
        paddle.seed(5)
        data = Counted(9, [])
        drawn = RandomSampler(data, generator=paddle.framework.core.default_cpu_generator())
        order = BatchSampler(sampler=drawn, batch_size=4) if shuffle else BatchSampler(data, batch_size=4)
        loader = DataLoader(data, batch_sampler=order)
        return [[x.tolist() for x in batch] for batch in loader]

    (expected,) = run_ranks(plain, 1)

    def program():
        paddle.seed(5)
        read = []
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"])
        loader = DataLoader(Counted(9, read), batch_size=4, shuffle=shuffle)
        sharded = dist.shard_dataloader(loader, mesh, shard_dims="dp")
        batches = list(sharded)
        parts = [batch[1]._local_value().tolist() for batch in batches]
        whole = [[x.tolist() for x in batch] for batch in batches]
        return whole, parts, read, len(sharded)

    results = run_ranks(program, 4)
    for rank, (whole, parts, read, count) in enumerate(results):
        first = rank < 2
        assert whole == expected
        assert count == 3
        order = [i for _, i in expected]
        assert parts == [i[:2] if first else i[2:] for i in order[:2]] + [order[2] if first else []]
        assert read == [i for part in parts for i in part] + ([] if first else order[2])


def test_every_rank_reads_what_its_entries_need():
    """On two meshes ranks read their own entry's rows; entries that need different rows are read whole."""

    def program(dims):
        read = []
        a, b = dist.ProcessMesh([0, 1], ["x"]), dist.ProcessMesh([2, 3], ["x"])
        loader = DataLoader(Counted(4, read), batch_size=4)
        ((x, y),) = dist.shard_dataloader(loader, [a, b], shard_dims=dims)
        return read, x._local_value().shape, y._local_value().shape, x.shape, y.shape

    assert run_ranks(lambda: program("x"), 4) == [
        ([0, 1], [2, 3], [0], [4, 3], [4]),
        ([2, 3], [2, 3], [0], [4, 3], [4]),
        ([0, 1], [0], [2], [4, 3], [4]),
        ([2, 3], [0], [2], [4, 3], [4]),
    ]
    assert [read for read, *_ in run_ranks(lambda: program(["x", None]), 4)][2:] == [[0, 1, 2, 3]] * 2


def test_loaders_that_cannot_be_cut_are_read_whole():
    """Own collation, and a sampler of shares, keep their meaning: whole batches everywhere, or each rank's own part."""

    def program():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        read = []
        own = DataLoader(Counted(4, read), batch_size=4, collate_fn=lambda rows: [paddle.to_tensor([len(rows)] * 4)])
        ((x,),) = dist.shard_dataloader(own, mesh, shard_dims="x")
        sampler = DistributedBatchSampler(Counted(4, []), 2)
        ((_, y),) = dist.shard_dataloader(DataLoader(Counted(4, []), batch_sampler=sampler), mesh, shard_dims="x")
        return read, x.tolist(), x._local_value().shape, y.tolist()

    assert run_ranks(program, 2) == [([0, 1, 2, 3], [4] * 4, [2], [0, 1, 2, 3])] * 2


def test_entries_that_are_lists_have_meshes_and_ordinary_parts():
    """A list entry takes one mesh for each part; dense_tensor_idx keeps parts as ordinary tensors."""

    def program():
        a, b = dist.ProcessMesh([0, 1], ["x"]), dist.ProcessMesh([0, 1], ["y"])
        batch = [[paddle.ones([4]), paddle.ones([2])], paddle.ones([4])]
        ((x, y), z) = next(iter(dist.shard_dataloader([batch], [[a, b], b], shard_dims=[["x", None], "y"])))
        ((p, q), _) = next(iter(dist.shard_dataloader([batch], a, shard_dims="x", dense_tensor_idx=[[1], []])))
        return x.placements, y.process_mesh == b, y.placements, z.placements, p.placements, q.placements

    shard, whole = [dist.Shard(0)], [dist.Replicate()]
    assert run_ranks(program, 2)[0] == (shard, True, whole, shard, shard, None)


def test_a_rank_outside_the_mesh_shows_no_values():
    """There a tensor prints as not initialized, numpy() is empty, item() None, and a number is an error."""

    def program():
        mesh = dist.ProcessMesh([1], ["x"])
        loss = paddle.mean(dist.shard_tensor(paddle.ones([2, 3]), mesh, [dist.Shard(0)]))
        wide = dist.shard_tensor(paddle.ones([2, 3]), mesh, [dist.Shard(0)])
        shown = str(loss), f"{loss}", loss.numpy().tolist(), loss.item(), wide.numpy().shape, np.asarray(wide).shape
        try:
            return shown, float(loss)
        except RuntimeError as error:
            return shown, str(error)

    (outside, error), (inside, number) = run_ranks(program, 2)
    assert "GlobalDenseTensor Not initialized)" in outside[0]
    assert outside[1:] == (outside[0], [], None, (2, 3, 0), (2, 3, 0))
    assert "rank 0 holds nothing" in error
    assert number == 1
    assert inside[2:] == (1.0, 1.0, (2, 3), (2, 3))
    assert "GlobalDenseTensor=" in inside[0]


def test_layers_are_placed_with_their_hooks():
    """shard_layer replicates what shard_fn leaves, buffers included, and changes inputs and outputs."""

    def program():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        layer = nn.BatchNorm1D(4)
        shard = [dist.Shard(0)]
        dist.shard_layer(
            layer, mesh,
            input_fn=lambda inputs, mesh: [dist.shard_tensor(inputs[0], mesh, shard)],
            output_fn=lambda output, mesh: dist.unshard_dtensor(output),
        )  # fmt: skip
        placed = [t.placements for t in (*layer.parameters(), *layer.buffers())]
        x = paddle.arange(24.0).reshape([6, 4])
        return placed, layer(x).numpy()

    plain = nn.BatchNorm1D(4)(paddle.arange(24.0).reshape([6, 4])).numpy()
    for placed, output in run_ranks(program, 2):
        assert placed == [[dist.Replicate()]] * len(placed)
        np.testing.assert_allclose(output, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["eager", "compiled", "function"])
def test_the_global_norm_is_that_of_all_meshes(way):
    """Two layers on two meshes are clipped by one factor, as in one process: by the optimizer, eagerly and in a
    compiled step, and by the function on parameters."""
    rows = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)

    class Stages(nn.Layer):
        def __init__(self, meshes):
            super().__init__()
            paddle.seed(0)
            self.first, self.second, self.meshes = nn.Linear(5, 7), nn.Linear(7, 3), meshes
            for layer, mesh in zip((self.first, self.second), meshes, strict=False):
                dist.shard_layer(layer, mesh, lambda _, at, mesh: dist.shard_tensor(at.weight, mesh, [dist.Shard(1)]))

        def forward(self, x):
            y = self.first(x)
            return self.second(dist.reshard(y, self.meshes[1], [dist.Shard(0)]) if self.meshes else y)

    def losses(meshes):
        model = Stages(meshes)
        clip = None if way == "function" else nn.ClipGradByGlobalNorm(0.1)
        optimizer = paddle.optimizer.SGD(1.0, parameters=model.parameters(), grad_clip=clip)

        def step(x):
            loss = (model(x) ** 2).mean()
            loss.backward()
            if way == "function":
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.clear_grad()
            return loss

        if way == "compiled":
            step = paddle.jit.to_static(step, full_graph=True)
        batches = [dist.shard_tensor(x, meshes[0], [dist.Shard(0)]) if meshes else paddle.to_tensor(x) for x in rows]
        return [step(x).item() for x in batches]

    expected = losses([])
    found = run_ranks(lambda: losses([dist.ProcessMesh([0, 1]), dist.ProcessMesh([2, 3])]), 4)
    assert found[0] == found[1] == [None] * 3
    for values in found[2:]:
        np.testing.assert_allclose(values, expected, rtol=1e-5)


def _sgd():
    layer = dist.shard_layer(paddle.nn.Linear(1, 1), _MESH)
    return paddle.optimizer.SGD(0.1, parameters=layer.parameters())


_MESH = dist.ProcessMesh([0], ["x"])


def _static():
    return dist.to_static(nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dist.ProcessMesh([0, 0]), ValueError, "more than once"),
        (lambda: dist.shard_tensor([1.0], dist.ProcessMesh([0, 1]), []), ValueError, "1 ranks were launched"),
        (lambda: dist.shard_tensor([1.0], _MESH, [dist.Shard(1)]), ValueError, "1 dimensions"),
        (lambda: dist.shard_tensor([1.0], _MESH, [dist.Shard(0)] * 2), ValueError, "2 placements"),
        (lambda: dist.shard_layer(3, _MESH), TypeError, "takes a Layer"),
        (lambda: dist.shard_optimizer(3), TypeError, "takes an Optimizer"),
        (lambda: dist.shard_dataloader([], [], shard_dims="x"), TypeError, "ProcessMesh"),
        (lambda: dist.shard_dataloader([], _MESH, shard_dims="z"), ValueError, "'z' is not a dimension"),
        (lambda: dist.shard_dataloader([], [_MESH, _MESH], None, ["x", "x", "x"]), ValueError, "2 meshes"),
        (lambda: dist.set_mesh(3), TypeError, "ProcessMesh"),
        (lambda: dist.ShardingStage1("z", _MESH), ValueError, "'z' is not a dimension"),
        (lambda: dist.shard_optimizer(_sgd(), dist.ShardingStage1("z")), ValueError, "'z' is not a dimension"),
        (lambda: dist.shard_optimizer(_sgd(), dist.ShardingStage3(1)), ValueError, "1 is not a dimension"),
        (lambda: dist.to_static(3), TypeError, "takes a Layer .* not int"),
        (lambda: dist.to_static(paddle.nn.Linear(1, 1), None, paddle.mean, 0.1), TypeError, "not Linear and float"),
        (lambda: _static().dist_main_program(), RuntimeError, "no program of mode 'predict' yet"),
        (lambda: _static().dist_main_program("test"), ValueError, "not 'test'"),
        (lambda: _static().dist_startup_program(), NotImplementedError, "dist_startup_program .* have values"),
        (lambda: _static().serial_startup_program("train"), NotImplementedError, "serial_startup_program .* values"),
        (lambda: _static().serial_main_program(), NotImplementedError, "serial_main_program .* is not kept"),
    ],
)
def test_wrong_annotations_teach(call, error, message):
    """Each mistake raises its error, naming what came and what was expected."""
    with pytest.raises(error, match=message):
        call()

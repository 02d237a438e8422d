"""The layers and groups of ``fleet`` for one rank, by the names that libraries import; test_fleet_hybrid has more."""

import hashlib
import random
import shutil
import tarfile
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.dataset.common import md5file
from argosy.distributed import fleet
from argosy.distributed.fleet import meta_parallel as parts
from argosy.distributed.fleet.layers.mpu import mp_ops
from argosy.distributed.fleet.utils import sequence_parallel_utils as sequence
from argosy.distributed.group import Group
from argosy.nn import functional as F
from argosy.utils.download import _decompress

TWO = Group(0, 7, [0, 1], name="two")


def _x(*shape):
    return paddle.to_tensor(np.random.default_rng(3).standard_normal(shape).astype("float32"), stop_gradient=False)


# ---- where libraries look


@pytest.mark.parametrize(
    "name",
    [
        "amp.auto_cast:amp_global_state", "autograd.py_layer:PyLayer", "distributed.parallel:sync_params_buffers",
        "distributed.communication.group:_get_global_group", "distributed.communication.reduce:ReduceOp",
        "distributed.communication.batch_isend_irecv:_coalescing_manager",
        "distributed.communication.reduce:_get_reduce_op", "io.dataloader.dataloader_iter:_DataLoaderIterBase",
        "distributed.fleet:fleet",
        "distributed.fleet.base:topology", "distributed.fleet.layers.mpu:mp_layers",
        "distributed.fleet.meta_optimizers.dygraph_optimizer:HybridParallelOptimizer",
        "distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer:DygraphShardingOptimizerV2",
        "distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_optimizer:HybridParallelOptimizer",
        "distributed.fleet.meta_parallel.parallel_layers.random:get_rng_state_tracker",
        "distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2:GroupShardedOptimizerStage2",
        "distributed.fleet.meta_parallel.sharding.group_sharded_utils:GroupShardedScaler",
        "distributed.fleet.model:PipelineParallel", "distributed.fleet.recompute.recompute:recompute",
        "distributed.fleet.utils.hybrid_parallel_util:obtain_optimizer_parameters_list",
        "distributed.fleet.utils.log_util:logger",
    ],
)  # fmt: skip
def test_names_are_where_paddle_has_them(name):
    module, attribute = name.split(":")
    found = import_module(f"argosy.{module}")
    if not hasattr(found, attribute):
        import_module(f"argosy.{module}.{attribute}")
    assert hasattr(found, attribute)


def test_recompute_stays_a_function_once_its_module_is_imported():
    import_module("argosy.distributed.fleet.recompute.recompute")
    assert fleet.recompute is fleet.utils.recompute
    x = _x(3)
    fleet.recompute(paddle.sin, x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.numpy()), rtol=1e-6)


# ---- layers


@pytest.mark.parametrize("kind", [parts.ColumnParallelLinear, parts.RowParallelLinear])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear_layers_of_one_rank_are_linear(kind, has_bias):
    layer, x = kind(4, 6, has_bias=has_bias), _x(3, 4)
    if has_bias:
        assert not layer.bias.numpy().any()
        layer.bias.set_value(np.arange(6, dtype="float32"))
    shift = np.arange(6) if has_bias else 0
    np.testing.assert_allclose(layer(x).numpy(), x.numpy() @ layer.weight.numpy() + shift, rtol=1e-5, atol=1e-6)
    assert list(layer.state_dict()) == ["weight", "bias"][: 1 + has_bias]
    assert layer.weight.is_distributed is False


def test_the_embedding_and_the_cross_entropy_of_one_rank_are_whole():
    table = parts.VocabParallelEmbedding(5, 3)
    np.testing.assert_array_equal(table(paddle.to_tensor([4, 0])).numpy(), table.weight.numpy()[[4, 0]])
    logits, label = _x(3, 5), paddle.to_tensor([1, -100, 4])
    losses = parts.ParallelCrossEntropy()(logits, label)
    assert losses.shape == [3, 1]
    np.testing.assert_allclose(
        losses[:, 0].numpy(), F.cross_entropy(logits, label, reduction="none").reshape([-1]).numpy(), rtol=1e-6
    )
    assert losses[1].item() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parts.ColumnParallelLinear(4, 5, mp_group=TWO), "out_features of 5 does not divide"),
        (lambda: parts.RowParallelLinear(5, 4, mp_group=TWO), "in_features of 5 does not divide"),
        (lambda: parts.VocabParallelEmbedding(5, 4, mp_group=TWO), "num_embeddings of 5 does not divide"),
        (lambda: mp_ops._c_split(_x(3), TWO), "does not divide into the parts of 2 ranks"),
    ],
)
def test_unequal_parts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sequences_of_one_rank_stay_whole():
    fleet.init(is_collective=True)
    x = _x(4, 2)
    sequence.GatherOp.apply(sequence.ScatterOp.apply(x) * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((4, 2), 3))
    parameter = paddle.nn.Linear(2, 2).weight
    assert not sequence.is_sequence_parallel_parameter(parameter)
    sequence.mark_as_sequence_parallel_parameter(parameter)
    assert sequence.is_sequence_parallel_parameter(parameter)


# ---- pipelines of one stage


def test_a_pipeline_of_one_stage_runs_its_layers_and_shares_them():
    def transposed(layer, x):
        return paddle.matmul(x, layer.weight, transpose_y=True)

    described = [
        parts.SharedLayerDesc("table", paddle.nn.Linear, None, "weight", 3, 4, bias_attr=False),
        parts.LayerDesc(paddle.nn.Linear, 4, 4),
        paddle.tanh,
        parts.SharedLayerDesc("table", paddle.nn.Linear, transposed, "weight", 3, 4, bias_attr=False),
    ]
    results = []
    for interval in (0, 2):
        model, x = parts.PipelineLayer(described, num_stages=1, recompute_interval=interval), _x(2, 3)
        assert sorted(model.state_dict()) == ["1.bias", "1.weight", "shared_layers.table.weight"]
        table, middle = model.shared_layers["table"].weight, model.run_function[1]
        out = model(x)
        expected = np.tanh(x.numpy() @ table.numpy() @ middle.weight.numpy() + middle.bias.numpy()) @ table.numpy().T
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
        out.sum().backward()
        results.append([table.grad.numpy(), middle.weight.grad.numpy(), x.grad.numpy()])
    for plain, recomputed in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, recomputed)
    with pytest.raises(TypeError, match="derived from Layer"):
        parts.LayerDesc(paddle.tanh)


# ---- groups and random states


def test_a_grid_of_ranks_has_lines_and_places():
    grid = fleet.CommunicateTopology(["data", "pipe", "model"], [2, 3, 2])
    assert grid.world_size() == 12
    assert grid.get_rank(data=1, pipe=2, model=0) == 10
    assert tuple(grid.get_coord(7)) == (1, 0, 1)
    assert grid.get_comm_list("pipe") == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    assert grid.get_fused_ranks(["data", "model"]) == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
    assert grid.get_axis_list("model", 1) == [1, 3, 5, 7, 9, 11]
    assert grid.get_rank_from_stage(7, pipe=2) == 11
    with pytest.raises(ValueError, match="no place"):
        grid.get_rank(data=2, pipe=0, model=0)


def test_a_rank_is_alone_but_along_the_data():
    fleet.init(is_collective=True)
    groups = fleet.get_hybrid_communicate_group()
    assert groups.get_data_parallel_group().ranks == [0]
    assert (groups.get_model_parallel_rank(), groups.get_model_parallel_world_size()) == (0, 1)
    alone = groups.get_model_parallel_group()
    assert (alone.nranks, alone.rank) == (1, 0)
    x = _x(2)
    dist.all_reduce(x.detach(), group=alone)
    assert parts.ColumnParallelLinear(2, 2, mp_group=alone)(x).shape == [2]
    with pytest.raises(ValueError, match="2 places for 1 ranks"):
        fleet.HybridCommunicateGroup(fleet.CommunicateTopology(["data", "model"], [1, 2]))


def test_states_by_name_go_on_where_they_stopped():
    tracker = parts.RNGStatesTracker()
    tracker.add("one", 5)
    paddle.seed(5)
    expected = [paddle.rand([2]).numpy(), paddle.rand([2]).numpy()]
    paddle.seed(1)
    outside = paddle.rand([4]).numpy()
    paddle.seed(1)
    for part in expected:
        with tracker.rng_state("one"):
            np.testing.assert_array_equal(paddle.rand([2]).numpy(), part)
    np.testing.assert_array_equal(paddle.rand([4]).numpy(), outside)
    for wrong, call in (("seed 5", lambda: tracker.add("two", 5)), ("'one' already", lambda: tracker.add("one", 6))):
        with pytest.raises(ValueError, match=wrong):
            call()
    with pytest.raises(ValueError, match="does not exist"), tracker.rng_state("two"):
        pass


# ---- files of data sets


@pytest.mark.parametrize("ending", ["zip", "gztar"])
def test_an_archive_is_unpacked_beside_itself(tmp_path, ending):
    inner = tmp_path / "from" / "corpus"
    inner.mkdir(parents=True)
    (inner / "a.txt").write_text("words")
    archive = shutil.make_archive(str(tmp_path / "corpus"), ending, tmp_path / "from")
    assert md5file(archive) == hashlib.md5(Path(archive).read_bytes()).hexdigest()
    assert (Path(_decompress(archive)) / "a.txt").read_text() == "words"
    with pytest.raises(ValueError, match="no archive"):
        _decompress(str(inner / "a.txt"))


def test_an_archive_cannot_write_outside_its_folder(tmp_path):
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(ValueError, match=r"in\.tar.*outside"):
        _decompress(str(tmp_path / "in.tar"))
    assert not (tmp_path.parent / "outside").exists()


def test_an_older_tarfile_unpacks_what_is_safe_alone(tmp_path, monkeypatch):
    """Python 3.11.0 to 3.11.3 cannot filter members: their names are looked at here."""
    monkeypatch.delattr(tarfile, "data_filter")
    test_an_archive_cannot_write_outside_its_folder(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of newer Pythons, which miss the filter
        test_an_archive_is_unpacked_beside_itself(tmp_path, "gztar")


def test_states_are_switched_and_come_back():
    from argosy.distributed.fleet.recompute.recompute import switch_rng_state_tracker

    def drawn():
        return paddle.rand([2]).tolist(), np.random.rand(), random.random()

    states = paddle.get_rng_state(), {}, np.random.get_state(), random.getstate()
    first = drawn()
    after = drawn()
    states_after = [first, after]
    paddle.set_rng_state(states[0])
    np.random.set_state(states[2])
    random.setstate(states[3])
    drawn()
    with switch_rng_state_tracker(*states):
        assert drawn() == first
    assert drawn() == states_after[1]


def test_a_place_answers_for_every_kind_of_device():
    place = paddle.to_tensor(1.0).place
    kinds = ("cpu", "gpu", "xpu", "ipu", "custom", "cuda_pinned", "xpu_pinned")
    assert [kind for kind in kinds if getattr(place, f"is_{kind}_place")()] == ["cpu"]
    assert type(place)("npu").is_custom_place()
    assert paddle.framework._current_expected_place_() == place


class _Sum(paddle.nn.Layer):
    def __init__(self, size, scale=1.0, sublayers_spec=None):
        super().__init__()
        self.linear, self.scale, self.spec = paddle.nn.Linear(size, size), scale, sublayers_spec

    def forward(self, pair):
        x, y = pair
        return self.linear(x) * self.scale + y, y


def test_layers_are_made_of_specifications():
    """A class, where one is found, a function as it is; errors name the class and the module."""
    made = parts.build_spec_layer(parts.LayerSpec(_Sum, {"scale": 2.0}, int), 3)
    assert (made.scale, made.spec, made.linear.weight.shape) == (2.0, int, [3, 3])
    found = parts.build_spec_layer(parts.LayerSpec(("argosy.nn", "ReLU")))
    assert type(found) is paddle.nn.ReLU
    assert parts.build_spec_layer(_x) is _x
    with pytest.raises(TypeError, match="_Sum"):
        parts.build_spec_layer(_Sum, 3, depth=4)
    with pytest.raises(ImportError, match="no 'Nothing'"):
        parts.build_spec_layer(parts.LayerSpec(("argosy.nn", "Nothing")))


def test_nodes_run_backward_by_themselves():
    """Two nodes give the gradients of one expression; the pieces are cut from each other."""
    paddle.seed(0)
    first, second = _Sum(3), _Sum(3)
    x, y = (paddle.rand([2, 3]) for _ in range(2))
    x.stop_gradient = False
    second(first((x, y)))[0].sum().backward()
    expected = [x.grad, first.linear.weight.grad, second.linear.weight.grad]
    first.clear_gradients()
    second.clear_gradients()
    node = parts.ScheduleNode(lambda pair: second(pair)[0])
    chunk = parts.ScheduleChunk([parts.ScheduleNode(first), node])
    out = chunk.forward((x, y))
    found = [chunk.backward(paddle.ones_like(out)), first.linear.weight.grad, second.linear.weight.grad]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="comes after forward"):
        chunk.backward(out)
    chunk.forward((x, y))
    with pytest.raises(ValueError, match="2 gradients for 1 outputs"):
        chunk.backward((out, out))
    with pytest.raises(TypeError, match="got Linear"):
        parts.ScheduleChunk([first.linear])


def test_a_group_of_one_is_made_by_hand():
    """As libraries do where they have no other ranks: it communicates with itself."""
    group = paddle.distributed.communication.group.Group(0, None, [0])
    x = paddle.to_tensor([1.0])
    paddle.distributed.all_reduce(x, group=group)
    assert (group.rank, group.nranks, x.tolist()) == (0, 1, [1.0])


def test_classes_of_tensors_are_annotations():
    """As code that is written for type checkers has them."""
    kind = paddle.LongTensor | None
    assert kind is not None
    assert paddle.LongTensor(2, 3).shape == [2, 3]
    assert paddle.cuda.FloatTensor is paddle.FloatTensor

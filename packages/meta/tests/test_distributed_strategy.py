"""``Strategy``: the snippets of the documentation, what its parts do, fields that do not exist or are not built."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import Strategy, fleet
from argosy.distributed.debug import run_ranks


def test_published_snippets_run():
    """Fields are set as Paddle's documentation sets them, and read back."""
    strategy = Strategy()
    with pytest.warns(UserWarning, match="FusedPasses.*=True does nothing here: the compiler fuses by itself"):
        strategy.fused_passes.gemm_epilogue = True
    strategy.pipeline.enable = True
    strategy.pipeline.schedule_mode = "1F1B"
    strategy.pipeline.vpp_degree = 2
    assert strategy.fused_passes.to_dict()["gemm_epilogue"] is True
    assert (strategy.pipeline.schedule_mode, strategy.pipeline.vpp_degree) == ("1F1B", 2)
    strategy.pipeline.schedule_mode = "interleaved"
    strategy.pipeline.accumulate_steps, strategy.pipeline.micro_batch_size = 4, 2
    assert (strategy.pipeline.schedule_mode, strategy.pipeline.accumulate_steps) == ("interleaved", 4)
    strategy.pipeline.schedule_mode = "1F1B"
    assert Strategy().pipeline.vpp_degree == 1
    assert "schedule_mode='1F1B'" in repr(strategy)


def test_fields_are_those_of_paddle():
    """Every field of the parts that Paddle has, with its default."""
    pipeline = Strategy().pipeline
    assert (pipeline.pp_degree, pipeline.memory_limit_times, pipeline.enable_send_recv_overlap) == (1, -1, False)
    assert Strategy().sharding.comm_buffer_size_MB == 256
    assert Strategy({"dp_optimization": {"enable": True}}).dp_optimization.fuse_grad_size_in_MB == 32
    assert Strategy().mp_optimization.replace_with_c_embedding is False
    assert Strategy().sp_optimization.enable
    assert Strategy().amp.use_promote
    with pytest.raises(
        NotImplementedError, match="memory_limit_times=2: 'ZBH1' and 'ZBVPP' are searched for, not '1F1B'"
    ):
        Strategy({"pipeline": {"enable": True, "memory_limit_times": 2}}).check_implemented()


def test_a_dictionary_configures_parts():
    """``Strategy(config)`` sets fields of parts and of the whole."""
    strategy = Strategy(
        {"sharding": {"enable": True, "stage": 2}, "auto_mode": "full", "amp": {"init_loss_scaling": 2}}
    )
    assert (strategy.sharding.stage, strategy.auto_mode, strategy.amp.init_loss_scaling) == (2, "full", 2.0)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("recompute", "enable_tuning", True), ("amp", "use_master_grad", True), ("sharding", "comm_buffer_size_MB", 32)],
)
def test_what_does_nothing_says_so(part, name, value):
    with pytest.warns(UserWarning, match=f"{name}={value} does nothing here: "):
        strategy = Strategy({part: {name: value}})
    assert getattr(getattr(strategy, part), name) == value
    with pytest.warns(UserWarning, match="Strategy.seed=3 does nothing here: argosy.seed seeds"):
        strategy.seed = 3
    with pytest.raises(NotImplementedError, match="gradient_scale=False"):
        Strategy({"gradient_scale": False}).check_implemented()


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"shading": {}}, AttributeError, "no field 'shading'"),
        ({"sharding": {"stages": 1}}, AttributeError, "Sharding has no field 'stages'"),
        ({"sharding": {"stage": 4}}, ValueError, "Sharding.stage is one of"),
        ({"pipeline": {"vpp_degree": "2"}}, TypeError, "Pipeline.vpp_degree takes int"),
        ([], ValueError, "takes a dictionary"),
    ],
)
def test_what_does_not_fit_is_refused(config, error, message):
    """Unknown names, wrong types and values raise at once, naming the field."""
    with pytest.raises(error, match=message):
        Strategy(config)


class _Blocks(nn.Layer):
    """Blocks of which each is larger within than between; ``fleet.recompute`` where it is asked to."""

    def __init__(self, regions):
        super().__init__()
        self.regions = regions
        self.blocks = nn.LayerList(
            [nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 8)) for _ in range(4)]
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + (fleet.recompute(block, x) if self.regions else block(x))
        return x


def _recomputed(mesh=None, regions=True, **recompute):
    """Losses of three calls, and the bytes of intermediate values."""
    paddle.seed(3)
    model = _Blocks(regions)
    if mesh is not None:
        dist.shard_layer(model, mesh)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
    step = dist.to_static(model, None, nn.MSELoss(), optimizer, Strategy({"recompute": recompute}))
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((256, 8)).astype(np.float32))
    if mesh is not None:
        x = dist.shard_tensor(x, mesh, [dist.Shard(0)])
    losses = [float(step(x, x)) for _ in range(3)]
    return losses, step._steps["train"].compiled[-1].executable.report()["arena_bytes"]


def test_regions_are_computed_again():
    """Losses keep their bits, dropout included; memory shrinks: by calls in the model, by names of layers."""
    losses, whole = _recomputed()
    names = [f"blocks.{i}" for i in range(4)]
    for found, held in (_recomputed(enable=True), _recomputed(regions=False, enable=True, checkpoints=names)):
        assert found == losses
        assert held < 0.75 * whole
    some, held = _recomputed(enable=True, no_recompute_segments=[0, 1, 2, 3])
    assert (some, held) == (losses, whole)
    linear = {"main_ops": ["linear"], "num": 1, "pre_ops": [], "suf_ops": ["gelu"]}
    refined, more = _recomputed(enable=True, refined_ops_patterns=[linear])
    assert refined == losses
    assert _recomputed(enable=True)[1] < more
    with pytest.raises(ValueError, match=r"Strategy\.recompute: nothing to compute again"):
        _recomputed(regions=False, enable=True)
    with pytest.raises(ValueError, match=r"checkpoints are names of the model's layers, not \['head'\]"):
        _recomputed(enable=True, checkpoints=["head"])


def test_regions_of_ranks_are_computed_again():
    def program(enable):
        return _recomputed(dist.ProcessMesh([0, 1], ["dp"]), enable=enable)

    (losses, whole), (found, held) = run_ranks(lambda: program(False), 2)[0], run_ranks(lambda: program(True), 2)[0]
    np.testing.assert_allclose(found, losses, rtol=1e-6)
    assert held < 0.8 * whole


def test_mixed_precision_names_what_is_not_built():
    with pytest.raises(NotImplementedError, match=r"Strategy\.amp\.level='o3'"):
        Strategy({"amp": {"enable": True, "level": "o3"}}).check_implemented()
    Strategy({"amp": {"enable": True, "level": "O1"}}).check_implemented()


def _losses(config, mesh=None, accumulated=1):
    """Losses of four calls of a compiled step with the strategy, the weight's layout and its moment's."""
    paddle.seed(0)
    model = nn.Linear(4, 4)
    if mesh is not None:
        dist.shard_layer(model, mesh)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    if accumulated > 1:
        optimizer = dist.shard_optimizer(optimizer, gradient_accumulation_steps=accumulated)
    step = dist.to_static(model, None, nn.MSELoss(), optimizer, Strategy(config))
    rows = np.random.default_rng(0).standard_normal((4, 6, 4)).astype(np.float32)
    losses = [float(step(paddle.to_tensor(x), paddle.to_tensor(x[:, ::-1].copy()))) for x in rows]
    moment = optimizer._accumulators["moment1"][model.weight.name]
    return losses, model.weight.placements, moment.placements, str(step.dist_main_program())


def _eager_losses():
    """The same with updates from the mean gradient of two batches each."""
    paddle.seed(0)
    model = nn.Linear(4, 4)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    losses = []
    for i, x in enumerate(np.random.default_rng(0).standard_normal((4, 6, 4)).astype(np.float32)):
        loss = nn.MSELoss()(model(paddle.to_tensor(x)), paddle.to_tensor(x[:, ::-1].copy()))
        (loss / 2).backward()
        losses.append(float(loss))
        if i % 2:
            optimizer.step()
            optimizer.clear_grad()
    return losses


def test_gradients_of_several_batches_are_merged():
    """Every second call updates, by the mean of both gradients; shard_optimizer can ask for the same."""
    expected = _eager_losses()
    merged, *_ = _losses({"gradient_merge": {"enable": True, "k_steps": 2}})
    np.testing.assert_allclose(merged, expected, rtol=1e-5)
    np.testing.assert_allclose(_losses({}, accumulated=2)[0], expected, rtol=1e-5)
    summed, *_ = _losses({"gradient_merge": {"enable": True, "k_steps": 2, "avg": False}})
    assert summed[:2] == merged[:2]
    with pytest.raises(ValueError, match="gradient_accumulation_steps is a number from 1, not 0"):
        dist.shard_optimizer(paddle.optimizer.SGD(0.1, parameters=[]), gradient_accumulation_steps=0)


def test_states_are_sharded_by_the_strategy():
    """sharding splits states along the mesh dimension of its degree, and changes no loss."""
    sharding = {"sharding": {"enable": True, "stage": 3, "degree": 2}}

    def program(config):
        return _losses(config, dist.ProcessMesh([0, 1], ["dp"]))

    plain, split = run_ranks(lambda: program({}), 2)[0], run_ranks(lambda: program(sharding), 2)[0]
    np.testing.assert_allclose(split[0], plain[0], rtol=1e-5)
    assert (plain[1], split[1], split[2]) == ([dist.Replicate()], [dist.Shard(0)], [dist.Shard(0)])
    with pytest.raises(ValueError, match=r"degree=8: no dimension of ProcessMesh.* has so many ranks"):
        run_ranks(lambda: program({"sharding": {"enable": True}}), 2)
    with pytest.raises(ValueError, match="no parameter is distributed"):
        _losses(sharding)


def test_forward_passes_run_in_mixed_precision():
    """With amp the product is one of bfloat16; losses stay near those of float32."""
    plain = _losses({})
    mixed = _losses({"amp": {"enable": True, "dtype": "bfloat16"}})
    assert "bfloat16" in mixed[3]
    assert "bfloat16" not in plain[3]
    np.testing.assert_allclose(mixed[0], plain[0], rtol=0.05)


def test_losses_of_half_precision_are_scaled():
    """A scale that overflows shrinks until steps are taken; with one that fits losses are near those of float32."""
    amp = {"enable": True, "dtype": "float16", "decr_every_n_nan_or_inf": 1, "decr_ratio": 2.0**-20}
    plain, *_ = _losses({})
    fitting, *_ = _losses({"amp": {**amp, "init_loss_scaling": 1024.0}})
    np.testing.assert_allclose(fitting, plain, rtol=0.01)
    late, *_ = _losses({"amp": {**amp, "init_loss_scaling": 2.0**30}})
    assert np.isfinite(late).all()
    np.testing.assert_allclose(late[0], plain[0], rtol=0.01)


def _scaled_losses(mesh, decorated, **config):
    """Losses of four batches, of which the second overflows, the scale after them, and the parameters."""
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
    if decorated:
        paddle.amp.decorate(model, level="O2", dtype="float16", master_grad=decorated == "master_grad")

    def place(name, layer, mesh):
        """The products of a pair split among the ranks of "mp", their sum made behind it."""
        for key, parameter in layer.named_parameters(include_sublayers=False):
            split = {"0.weight": 1, "0.bias": 0, "3.weight": 0}.get(f"{name}.{key}")
            last = dist.Replicate() if split is None or mesh.ndim == 1 else dist.Shard(split)
            layout = [dist.Replicate()] * (mesh.ndim - 1) + [last]
            setattr(layer, key, dist.shard_tensor(parameter, mesh, layout))

    if mesh is not None:
        dist.shard_layer(model, mesh, place)
    optimizer = paddle.optimizer.AdamW(
        0.01, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5), multi_precision=bool(decorated)
    )
    amp = {
        "enable": True,
        "level": "o2" if decorated else "o1",
        "init_loss_scaling": 1024.0,
        "decr_every_n_nan_or_inf": 1,
    }
    step = dist.to_static(model, None, nn.MSELoss(), optimizer, Strategy({"amp": amp, **config}))
    rows, losses = np.random.default_rng(0).standard_normal((4, 8, 4)).astype(np.float32), []
    rows[1, 0] = 3e38
    for x in rows:
        batch = [paddle.to_tensor(x), paddle.to_tensor(rows[0, :, :2].copy())]
        if mesh is not None:
            layout = [dist.Shard(0)] + [dist.Replicate()] * (mesh.ndim - 1)
            batch = [dist.shard_tensor(entry, mesh, layout) for entry in batch]
        losses.append(float(step(*batch)))
    kept = [dist.unshard_dtensor(p).astype("float32").numpy().copy() for p in model.parameters()]
    dtypes = {p.dtype for p in model.parameters()}
    return losses, float(step._scaler.state_dict()["scale"][0]), kept, dtypes


@pytest.mark.parametrize(
    ("dims", "decorated", "stage"),
    [(["dp"], False, 2), (["dp", "mp"], "master_grad", 1), (["dp"], True, 3), (["dp", "mp"], False, None)],
)
def test_scaled_steps_of_ranks_are_those_of_one_process(dims, decorated, stage):
    """The batch that overflows changes no parameter and shrinks the scale on every rank; those in half precision have
    float32 copies, as have their gradients with ``master_grad``."""
    config = {} if stage is None else {"sharding": {"enable": True, "stage": stage, "degree": 2}}
    shape = [2] * len(dims)

    def program():
        mesh = dist.ProcessMesh(np.arange(2 ** len(dims)).reshape(shape), dims)
        return _scaled_losses(mesh, decorated, **config)

    losses, scale, kept, dtypes = _scaled_losses(None, decorated)
    assert np.isnan(losses[1])
    assert scale < 1024.0
    assert (paddle.float16 in dtypes) is bool(decorated)
    for found in run_ranks(program, 2 ** len(dims)):
        np.testing.assert_allclose(found[0], losses, rtol=1e-3)
        assert (found[1], found[3]) == (scale, dtypes)
        for mine, expected in zip(found[2], kept, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-2, atol=1e-3)

"""Names and module paths of Paddle that libraries built on it import, beside those of its public pages."""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy.distributed import debug, fleet
from argosy.nn import functional as F
from argosy.nn import init


@pytest.mark.parametrize(
    "path",
    [
        "framework.core:set_prim_eager_enabled", "framework.core:default_cpu_generator", "framework.io:load",
        "framework:in_dynamic_or_pir_mode", "base.core:is_compiled_with_cuda", "base.framework:EagerParamBase",
        "base.framework:in_dygraph_mode", "pir:Value", "common_ops_import:check_variable_and_dtype",
        "io.dataloader.collate:default_collate_fn", "io.dataloader:DataLoader", "utils.download:get_path_from_url",
        "vision.transforms.transforms:_get_image_size", "vision.transforms.transforms:RandomCrop", "vision:Compose",
        "vision:resnet18", "vision:MNIST", "distributed.fleet.utils.hybrid_parallel_util:fused_allreduce_gradients",
        "nn.init:trunc_normal_",
    ],
)  # fmt: skip
def test_paths_of_libraries(path: str) -> None:
    module, _, name = path.partition(":")
    assert callable(getattr(import_module(f"argosy.{module}"), name))


def test_switches_and_marks_of_the_core_change_nothing() -> None:
    core = paddle.framework.core
    core.set_prim_eager_enabled(True)
    core._set_prim_all_enabled(True)
    core.nvprof_nvtx_push("a part")
    core.nvprof_nvtx_pop()
    assert core.get_cuda_device_count() == 0
    assert not core.is_compiled_with_cuda()
    assert isinstance(paddle.zeros([2]), core.eager.Tensor)
    assert isinstance(paddle.zeros([2]), paddle.pir.Value)
    assert isinstance(paddle.nn.Linear(2, 2).weight, paddle.base.framework.EagerParamBase)
    assert not isinstance(paddle.zeros([2]), paddle.base.framework.EagerParamBase)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        paddle.framework.nothing  # noqa: B018


def test_initialisers_as_functions_are_those_of_the_classes() -> None:
    of, wide = paddle.nn.initializer, ("leaky_relu", "fan_out")
    cases = [
        (lambda t: init.kaiming_normal_(t, a=0.1, mode="fan_out"), of.KaimingNormal(None, 0.1, *wide)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), of.KaimingUniform()),
        (lambda t: init.xavier_normal_(t, 2.0), of.XavierNormal(gain=2.0)),
        (lambda t: init.xavier_uniform_(t, fan_in=3, fan_out=5), of.XavierUniform(3, 5)),
        (lambda t: init.uniform_(t, -1.0, 2.0), of.Uniform(-1.0, 2.0)),
        (lambda t: init.normal_(t, 1.0, 0.1), of.Normal(1.0, 0.1)),
        (lambda t: init.trunc_normal_(t, std=0.02, a=-0.04, b=0.04), of.TruncatedNormal(0.0, 0.02, -0.04, 0.04)),
        (lambda t: init.orthogonal_(t, 3.0), of.Orthogonal(3.0)),
    ]  # fmt: skip
    for fill, same in cases:
        x, y = paddle.zeros([6, 4]), paddle.zeros([6, 4])
        paddle.seed(3)
        assert fill(x) is x
        paddle.seed(3)
        same(y)
        np.testing.assert_array_equal(x.numpy(), y.numpy())
        assert float(x.abs().sum()) > 0


def test_initialisers_without_chance() -> None:
    x = paddle.nn.Linear(3, 4).weight
    np.testing.assert_array_equal(init.eye_(x).numpy(), np.eye(3, 4))
    np.testing.assert_array_equal(init.ones_(x).numpy(), np.ones((3, 4)))
    np.testing.assert_array_equal(init.constant_(x, 0.5).numpy(), np.full((3, 4), 0.5))
    np.testing.assert_array_equal(init.zeros_(x).numpy(), np.zeros((3, 4)))
    filters = init.dirac_(paddle.zeros([2, 2, 3]))
    np.testing.assert_array_equal(filters.numpy()[:, :, 1], np.eye(2))
    assert init._calculate_fan_in_and_fan_out(paddle.zeros([8, 4, 3, 3])) == (36, 72)
    assert not x.stop_gradient
    with pytest.raises(ValueError, match="must be a matrix, got"):
        init.eye_(filters)
    with pytest.raises(TypeError, match="argument 'tensor' must be a Tensor"):
        init.ones_([1.0])


def test_files_by_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download = paddle.utils.download
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = "https://example.org/models/small.pdparams"
    with pytest.raises(FileNotFoundError, match=r"downloads nothing: fetch .*small.pdparams and put"):
        download.get_weights_path_from_url(url)
    folder = tmp_path / "paddle" / "hapi" / "weights"
    folder.mkdir(parents=True)
    (folder / "small.pdparams").write_bytes(b"weights")
    right = hashlib.md5(b"weights", usedforsecurity=False).hexdigest()
    assert download.get_weights_path_from_url(url, right) == str(folder / "small.pdparams")
    with pytest.raises(ValueError, match="another MD5 sum"):
        download.get_weights_path_from_url(url, "0" * 32)
    with pytest.raises(FileNotFoundError, match=r"fetch .*data.tar.gz and unpack it as .*data"):
        download.get_path_from_url("https://example.org/data.tar.gz", str(tmp_path))
    (tmp_path / "data").mkdir()
    assert download.get_path_from_url("https://example.org/data.tar.gz", str(tmp_path)) == str(tmp_path / "data")


def test_sizes_of_pictures() -> None:
    from PIL import Image

    from argosy.vision.transforms.transforms import _get_image_size

    assert _get_image_size(Image.new("RGB", (5, 3))) == (5, 3)
    assert _get_image_size(np.zeros((3, 5, 1))) == (5, 3)
    assert _get_image_size(paddle.zeros([1, 3, 5])) == (5, 3)


def test_checks_of_older_layers() -> None:
    checks = paddle.common_ops_import
    x = paddle.zeros([2], "int64")
    checks.check_variable_and_dtype(x, "x", ["int32", "int64"], "mine")
    with pytest.raises(TypeError, match=r"mine\(\): argument 'x' must have dtype float32, got int64"):
        checks.check_dtype(x.dtype, "x", "float32", "mine")
    with pytest.raises(TypeError, match=r"mine\(\): argument 'x' must be list or tuple, got Tensor. Really"):
        checks.check_type(x, "x", (list, tuple), "mine", "Really")
    assert checks.convert_dtype("bfloat16") == "uint16"
    assert checks.convert_dtype(np.float32) == "float32"


def test_nests() -> None:
    nest = {"b": [1, (2, 3)], "a": 4}
    assert paddle.utils.flatten(nest) == [4, 1, 2, 3]
    assert paddle.utils.pack_sequence_as(nest, [40, 10, 20, 30]) == {"b": [10, (20, 30)], "a": 40}
    assert paddle.utils.map_structure(lambda x: -x, nest) == {"b": [-1, (-2, -3)], "a": -4}


# ---- fleet


def _trained(seen: list[list[float]]) -> None:
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": fleet.worker_num()}
    assert fleet.init(is_collective=True, strategy=strategy) is fleet.fleet
    paddle.seed(5)
    layer = paddle.nn.Linear(2, 1)
    model = fleet.distributed_model(layer)
    optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=layer.parameters()))
    data = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    part = data[fleet.worker_index() :: fleet.worker_num()]
    for _ in range(2):
        model(paddle.to_tensor(part)).square().mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    fleet.barrier_worker()
    if fleet.is_first_worker():
        seen.append(layer.weight.numpy().ravel().tolist())


def test_fleet_trains_as_one_process_does() -> None:
    alone: list[list[float]] = []
    together: list[list[float]] = []
    _trained(alone)
    debug.run_ranks(lambda: _trained(together), 2)
    np.testing.assert_allclose(together, alone, rtol=1e-6)


def test_means_of_gradients_by_hand() -> None:
    def run() -> None:
        x = paddle.to_tensor([1.0 + fleet.worker_index()], stop_gradient=False)
        (x * x).sum().backward()
        fleet.utils.hybrid_parallel_util.fused_allreduce_gradients([x], None)
        np.testing.assert_allclose(x.grad.numpy(), [3.0])

    debug.run_ranks(run, 2)


def test_what_fleet_lacks_is_named() -> None:
    strategy = fleet.DistributedStrategy()
    assert strategy.qat is False
    with pytest.raises(ValueError, match=r"qat_configs has no \['bits'\]"):
        strategy.qat_configs = {"bits": 8}
    with pytest.raises(NotImplementedError, match=r"DistributedStrategy.elastic is not implemented; use distributed"):
        strategy.elastic = True
    with pytest.raises(NotImplementedError, match=r"gradient_scale_configs: scale_strategy='sum' is not"):
        strategy.gradient_scale_configs = {"scale_strategy": "sum"}
    assert all(hasattr(fleet.DistributedStrategy, name) for name in ("amp", "amp_configs", "hybrid_configs", "qat"))
    with pytest.raises(ValueError, match=r"lamb_configs has no \['decay'\]; it has \['exclude_from_weight_decay'"):
        strategy.lamb_configs = {"decay": 1.0}
    with pytest.warns(UserWarning, match="DistributedStrategy.fuse_grad_merge does nothing here: gradients are added"):
        strategy.fuse_grad_merge = True
    strategy.hybrid_configs = {"order": ["tp"]}
    with pytest.raises(ValueError, match=r"hybrid_configs\['order'\] names \['tp'\]"):
        fleet.init(is_collective=True, strategy=strategy)
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 7}
    with pytest.raises(ValueError, match="dp_degree is 7, but there are 1 ranks"):
        fleet.init(is_collective=True, strategy=strategy)
    with pytest.raises(NotImplementedError, match="parameter servers"):
        fleet.init(role_maker=object())
    fleet.init(is_collective=True)
    with pytest.raises(TypeError, match="argument 'model' must be a Layer, got int"):
        fleet.distributed_model(3)


def test_layers_are_found_where_paddle_defines_them() -> None:
    """``nn.layer.norm.LayerNorm`` is ``nn.LayerNorm``; PaddleSeg finds activations in their module's ``__dict__``."""
    for module, names in {
        "activation": ("ReLU", "GELU", "PReLU", "Softmax2D"),
        "common": ("Linear", "Dropout2D", "Upsample", "Pad3D", "Fold"),
        "container": ("Sequential", "LayerDict"),
        "conv": ("Conv2D", "Conv3DTranspose"),
        "distance": ("PairwiseDistance",),
        "layers": ("Layer",),
        "loss": ("CrossEntropyLoss", "CTCLoss", "HSigmoidLoss", "TripletMarginLoss"),
        "norm": ("LayerNorm", "SpectralNorm", "InstanceNorm3D"),
        "pooling": ("MaxPool2D", "LPPool1D", "MaxUnPool3D", "FractionalMaxPool2D"),
        "rnn": ("LSTM", "GRUCell", "BiRNN"),
        "transformer": ("Transformer", "MultiHeadAttention"),
        "vision": ("PixelShuffle",),
    }.items():
        home = getattr(paddle.nn.layer, module)
        assert all(home.__dict__[name] is getattr(paddle.nn, name) for name in names), module
    bases = paddle.nn.layer.norm._BatchNormBase, paddle.nn.layer.conv._ConvNd, paddle.nn.layer.norm._InstanceNormBase
    assert isinstance(paddle.nn.SyncBatchNorm(2), bases[0])
    assert isinstance(paddle.nn.Conv1DTranspose(2, 2, 1), bases[1])
    assert isinstance(paddle.nn.InstanceNorm2D(2), bases[2])
    handle = paddle.nn.Identity().register_forward_post_hook(lambda layer, inputs, outputs: None)
    assert isinstance(handle, paddle.nn.layer.layers.HookRemoveHelper)


def test_attention_masks_take_the_dtype_of_the_scores() -> None:
    convert = paddle.nn.layer.transformer._convert_attention_mask
    assert convert(None, "float32") is None
    assert convert(paddle.to_tensor([True, False]), "float32").tolist() == [0.0, -1e9]
    halves = convert(paddle.to_tensor([0.5, -2.0], "float64"), paddle.float32)
    assert halves.dtype == paddle.float32
    assert halves.tolist() == [0.5, -2.0]


def test_eval_works_where_a_subclass_overrides_train_without_a_mode() -> None:
    """PaddleSeg's Swin transformer does."""

    class Frozen(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = paddle.nn.Dropout(0.5)

        def train(self) -> None:
            self.training = True

    net = Frozen()
    assert net.eval() is net
    assert not net.training
    assert not net.inner.training


def test_attention_tells_its_sizes() -> None:
    """PaddleSeg's HRFormer reads them."""
    layer = paddle.nn.MultiHeadAttention(4, 2, vdim=6)
    assert (layer.kdim, layer.vdim) == (4, 6)


def test_files_in_memory_are_not_written(tmp_path: Path) -> None:
    """A part of a mapped file is a tensor that may be changed; the file, which needs no permission, stays as it was."""
    path = tmp_path / "weights.bin"
    np.arange(6, dtype=np.float32).tofile(path)
    path.chmod(0o444)
    part = paddle.MmapStorage(str(path), 24).get_slice("float32", 2, 5)
    part.add_(paddle.ones([3]))
    np.testing.assert_array_equal(part.numpy(), [3, 4, 5])
    np.testing.assert_array_equal(np.fromfile(path, np.float32), np.arange(6))
    with pytest.raises(ValueError, match="nbytes should be at most the file's 24, got 25"):
        paddle.MmapStorage(str(path), 25)


def test_bytes_as_tensors() -> None:
    """Bytes that may be written share their memory with the tensor; others are copied; odd numbers are refused."""
    core = paddle.base.core
    held = bytearray(np.arange(4, dtype=np.float32).tobytes())
    whole, part = core.frombuffer(held, paddle.float32), core.frombuffer(bytes(held), "float32", count=2, offset=4)
    held[:4] = np.float32(7).tobytes()
    np.testing.assert_array_equal(whole.numpy(), [7, 1, 2, 3])
    np.testing.assert_array_equal(part.numpy(), [1, 2])
    for arguments, message in (
        ((bytearray(3), "float32"), "3 bytes are not a whole number of elements of float32"),
        ((bytearray(8), "float32", 3), "8 bytes are not 3 elements of float32"),
        ((bytearray(8), "float32", -1, 9), "offset should be from 0 to the buffer's 8 bytes, got 9"),
    ):
        with pytest.raises(ValueError, match=message):
            core.frombuffer(*arguments)


def test_dtypes_have_their_older_names() -> None:
    """PaddleNLP's optimizers write them."""
    kinds = paddle.base.core.VarDesc.VarType
    assert paddle.zeros([1], kinds.FP16).dtype == paddle.float16
    assert paddle.zeros([1]).dtype == kinds.FP32
    assert paddle.core.VarDesc.VarType is kinds
    assert paddle.base.libpaddle.DataType is paddle.dtype


def test_modes_are_told_where_libraries_ask() -> None:
    asked = []

    @paddle.jit.to_static
    def f(x: Any) -> Any:
        asked.append((paddle.base.framework.in_pir_mode(), paddle.nn.layer.layers.in_declarative_mode()))
        return x + 1

    assert not paddle.base.framework.in_pir_mode()
    assert not paddle.nn.layer.layers.in_declarative_mode()
    f(paddle.ones([2]))
    assert asked[0] == (True, True)
    place = paddle.base.framework._current_expected_place()
    assert isinstance(place, paddle.core.CPUPlace)
    assert place == paddle.CPUPlace() == paddle.ones([1]).place


def test_layers_and_optimizers_are_where_paddle_defines_them() -> None:
    assert paddle.nn.layer.Sigmoid is paddle.nn.Sigmoid
    for module, name in {"adamw": "AdamW", "sgd": "SGD", "lamb": "Lamb", "rmsprop": "RMSProp"}.items():
        found = getattr(import_module(f"argosy.optimizer.{module}"), name)
        assert found is getattr(paddle.optimizer, name)


def test_the_state_of_auto_cast_is_told_and_the_module_does_not_hide_the_function() -> None:
    """PaddleNLP's T5 imports ``amp_state`` from ``amp.auto_cast``; one that is not enabled is a state, too."""
    state = import_module("argosy.amp.auto_cast").amp_state
    assert state() is None
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert state()["dtype"] == "bfloat16"
        with paddle.amp.auto_cast(False):
            assert state()["enable"] is False
        assert state()["enable"] is True
    assert state() is None


def test_attributes_of_several_parts_have_numbered_names() -> None:
    convert = paddle.nn.layer.transformer._convert_param_attr_to_list
    assert [attr.name for attr in convert(paddle.ParamAttr(name="w"), 2)] == ["w_0", "w_1"]
    assert [attr.name for attr in convert(None, 2)] == [None, None]
    assert convert(False, 2) == [False, False]
    first, second = convert(["a", False], 2)
    assert (first.name, second) == ("a", False)
    with pytest.raises(ValueError, match="3 parts"):
        convert(["a"], 3)
    layer = paddle.nn.TransformerEncoderLayer(4, 2, 8, weight_attr=paddle.ParamAttr(name="own"))
    assert layer.linear1.weight.name == "own_1"


def test_layers_written_like_paddles_own_have_a_helper() -> None:
    """PaddleNLP's linear layer with the weight the other way round."""

    class Turned(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self._dtype = self._helper.get_default_dtype()
            self.weight = self.create_parameter([3, 2], attr=paddle.ParamAttr._to_attr(None), dtype=self._dtype)

        def forward(self, x: Any) -> Any:
            return paddle.matmul(x, self.weight, transpose_y=True)

    assert Turned()(paddle.ones([1, 2])).shape == [1, 3]


def test_attention_takes_queries_keys_and_values_from_a_subclass() -> None:
    """PaddleNLP's RoFormer turns them by their positions."""

    class Doubled(paddle.nn.MultiHeadAttention):
        def _prepare_qkv(self, query: Any, key: Any, value: Any, cache: Any = None) -> Any:
            q, k, v, *cache = super()._prepare_qkv(query, key, value, cache)
            return q, k, v * 2, *cache

    layer, plain = Doubled(4, 2, bias_attr=False), paddle.nn.MultiHeadAttention(4, 2, bias_attr=False)
    plain.set_state_dict(layer.state_dict())
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, 3, 4)), "float32")
    np.testing.assert_allclose(layer(x).numpy(), 2 * plain(x).numpy(), rtol=1e-5)
    out, cache = layer(x, cache=layer.gen_cache(x))
    np.testing.assert_allclose(out.numpy(), layer(x).numpy(), rtol=1e-5)
    assert cache.k.shape == [1, 2, 3, 2]
    kept = plain.gen_cache(x, type=plain.StaticCache)
    assert plain(x, x, x, None, kept)[1] is kept


@pytest.mark.parametrize(
    "loss", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "cross_entropy"]
)
def test_labels_made_by_a_network_are_constants(loss: str) -> None:
    """As in Paddle: a teacher's probabilities need no detach()."""
    options = {"soft_label": True} if loss == "cross_entropy" else {}
    x, label = (paddle.to_tensor([[p, 1 - p]], stop_gradient=False) for p in (0.3, 0.4))
    getattr(F, loss)(x, label, **options).backward()
    assert x.grad.abs().sum() > 0
    assert label.grad is None or not label.grad.numpy().any()


def test_boxes_have_no_gradients() -> None:
    """As in Paddle; PaddleDetection's losses take them for targets."""
    ops, boxes = paddle.vision.ops, paddle.to_tensor([[1.0, 2.0, 5.0, 7.0]], stop_gradient=False)
    assert ops.box_coder(boxes, boxes, boxes).stop_gradient
    x = paddle.rand([1, 7, 2, 2])
    x.stop_gradient = False
    assert [t.stop_gradient for t in ops.yolo_box(x, paddle.to_tensor([[64, 64]]), [10, 13], 2, 0.01, 32)] == [
        True,
        True,
    ]
    true = paddle.to_tensor([[[0.4, 0.4, 0.3, 0.2]]], stop_gradient=False)
    ops.yolo_loss(x, true, paddle.to_tensor([[1]]), [10, 13], [0], 2, 0.7, 32).backward()
    assert x.grad is not None
    assert true.grad is None

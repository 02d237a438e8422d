"""Members that begin with an underscore, and inner names, which libraries built on Paddle read, call or override."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy.framework import flags
from argosy_hwadapt import DeviceNotFound


class _Scaled(paddle.nn.Linear):
    """A layer written as libraries write theirs: an attribute of its own called dtype, a state_dict of its own."""

    def __init__(self) -> None:
        super().__init__(2, 3, bias_attr=False)
        self.dtype = "float16"
        self.inner = paddle.nn.LayerNorm(3, weight_attr=paddle.ParamAttr(name="scale"))

    def state_dict(self) -> dict[str, Any]:  # type: ignore[override]
        return {f"wrapped.{name}": value for name, value in super().state_dict().items()}


def test_layers_take_any_attribute_and_override_their_state_dict() -> None:
    layer, other = _Scaled(), _Scaled()
    assert layer.dtype == "float16"
    assert not hasattr(paddle.nn.Linear(2, 2), "dtype")
    assert layer._weight_attr is None
    assert layer._bias_attr is False
    assert layer.inner._weight_attr.name == "scale"
    assert set(layer.state_dict()) == {"wrapped.weight", "wrapped.inner.weight", "wrapped.inner.bias"}
    with pytest.warns(UserWarning, match=r"inner\.bias is not found"):
        missing, unexpected = layer.set_state_dict({"weight": other.weight, "inner.weight": np.full(3, 2.0, "float32")})
    assert (missing, unexpected) == (["inner.bias"], []), "by the names of the layers, not of the override"
    np.testing.assert_array_equal(layer.weight.numpy(), other.weight.numpy())
    assert layer.load_state_dict({name: x for name, x in other._state_dict_impl().items()}) == ([], [])
    assert set(layer._obtain_parameters_buffers(structured_name_prefix="a.")) == {
        "a.weight",
        "a.inner.weight",
        "a.inner.bias",
    }


def test_layers_within_the_state_dict_may_have_an_implementation_of_their_own() -> None:
    class Frozen(paddle.nn.Linear):
        def _state_dict_impl(self, destination: Any = None, *args: Any, **kwargs: Any) -> Any:
            return {} if destination is None else destination

    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2), Frozen(2, 2))
    assert set(model.state_dict()) == {"0.weight", "0.bias"}
    model.register_buffer("hidden", paddle.ones([1]), persistable=False)
    assert "hidden" not in model.state_dict()
    assert "hidden" in model._state_dict_impl(include_non_persistable_buffer=True)


def test_internals_of_layers() -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2))
    assert model._modules is model._sub_layers
    assert model._get_name() == "Sequential"
    model._modules = {"only": paddle.nn.ReLU()}
    assert [name for name, _ in model.named_children()] == ["only"]
    model.register_buffer("kept", paddle.ones([1]))
    model._non_persistent_buffers_set = {"kept"}
    assert "kept" not in model.state_dict()
    conv = paddle.nn.Conv2DTranspose(1, 1, 2, bias_attr=False)
    assert conv._param_attr is None
    assert conv._bias_attr is False
    with pytest.raises(ValueError, match="must have 4 axes"):
        paddle.nn.BatchNorm2D(2)._check_input_dim(paddle.ones([2, 2]))


def test_conversion_goes_through_apply() -> None:
    seen: list[str] = []

    class Watched(paddle.nn.Linear):
        def _apply(self, func: Any, device: Any, dtype: Any, blocking: Any, include_sublayers: bool = True) -> None:
            seen.append(str(dtype))
            super()._apply(func, device, dtype, blocking, include_sublayers)

    model = paddle.nn.Sequential(Watched(2, 2))
    model(paddle.ones([1, 2])).sum().backward()
    weight = model[0].weight
    model.to(dtype="float64")
    assert seen == ["float64"]
    assert model[0].weight is weight
    assert weight.dtype == weight.grad.dtype == paddle.float64
    doubled = []
    model._apply(lambda t, device, dtype, blocking: doubled.append(t.shape) or t, None, None, True)
    assert doubled == [[2, 2], [2, 2], [2], [2]], "parameters and their gradients"


def test_layers_that_build_when_first_called() -> None:
    class Lazy(paddle.nn.Layer):
        def _build_once(self, x: Any, scale: float = 1.0) -> None:
            self.inner = paddle.nn.Linear(x.shape[-1], 2)
            self.calls = getattr(self, "calls", 0) + 1

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            return self.inner(x) * scale

    layer = Lazy()
    layer(paddle.ones([1, 3]), scale=2.0)
    layer(paddle.ones([1, 3]))
    assert layer.calls == 1
    assert layer.inner.weight.shape == [3, 2]


class _OwnMomentum(paddle.optimizer.SGD):
    """An optimizer that defines the update of one parameter, as libraries written for Paddle do."""

    def _create_accumulators(self, block: Any, parameters: Any) -> None:
        assert isinstance(block, paddle.base.framework.Block)
        for p in parameters:
            self._add_accumulator("velocity", p, fill_value=0.0)

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> None:
        parameter, grad = param_and_grad
        velocity: Any = self._get_accumulator("velocity", parameter)
        velocity.set_value(velocity * 0.9 + grad)
        parameter.set_value(parameter - self._create_param_lr(param_and_grad) * velocity)


class _Counted(paddle.optimizer.AdamW):
    """An optimizer that does something before the update of its base."""

    updates = 0

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
        self.updates += 1
        assert self._get_accumulator_master(self._moment1_acc_str, param_and_grad[0]).shape == param_and_grad[0].shape
        return super()._append_optimize_op(block, param_and_grad)


@pytest.mark.parametrize(
    ("own", "known"), [(_OwnMomentum, paddle.optimizer.Momentum), (_Counted, paddle.optimizer.AdamW)]
)
@pytest.mark.parametrize("groups", [False, True])
def test_optimizers_that_define_the_update_of_a_parameter(own: Any, known: Any, groups: bool) -> None:
    weights = []
    for make in (own, known):
        paddle.seed(1)
        layer = paddle.nn.Linear(3, 2)
        chosen: Any = layer.parameters()
        if groups:
            chosen = [{"params": [layer.weight]}, {"params": [layer.bias], "learning_rate": 0.5}]
        optimizer = make(0.1, parameters=chosen)
        for _ in range(3):
            layer(paddle.ones([2, 3])).square().sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        weights.append([p.numpy() for p in layer.parameters()])
    np.testing.assert_allclose(weights[0][0], weights[1][0], rtol=1e-6)
    np.testing.assert_allclose(weights[0][1], weights[1][1], rtol=1e-6)
    assert getattr(own, "updates", 0) == 0


def test_internals_of_optimizers() -> None:
    layer = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.Momentum(0.1, parameters=layer.parameters(), weight_decay=0.5)
    assert optimizer._param_groups[0] is layer.weight
    assert optimizer.type == "momentum"
    assert optimizer.regularization._coeff == 0.5
    assert paddle.optimizer.AdamW(parameters=layer.parameters()).regularization is None
    grouped = paddle.optimizer.Momentum(0.1, parameters=[{"params": [layer.weight], "learning_rate": 0.5}])
    assert grouped._param_groups[0]["params"][0] is layer.weight
    assert grouped._param_groups[0]["learning_rate"] == 0.5
    before = layer.weight.numpy()
    optimizer._apply_optimize(loss=None, startup_program=None, params_grads=[(layer.weight, layer.weight)])
    np.testing.assert_allclose(layer.weight.numpy(), before - 0.1 * 1.5 * before, rtol=1e-6)
    assert optimizer._get_accumulator("velocity", layer.weight).shape == [2, 2]
    with pytest.raises(KeyError, match="no state 'moment'"):
        optimizer._get_accumulator("moment", layer.weight)
    optimizer._set_auxiliary_var("found_inf", 1)
    assert optimizer._get_auxiliary_var("found_inf") == 1
    assert optimizer._get_auxiliary_var("other") is None
    assert optimizer._is_dtype_fp16_or_bf16(paddle.bfloat16)
    assert not optimizer._is_dtype_fp16_or_bf16(paddle.float32)


def test_a_replaced_apply_optimize_is_what_a_step_calls() -> None:
    layer, seen = paddle.nn.Linear(2, 2), []
    optimizer: Any = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    optimizer._apply_optimize = lambda *args, **kwargs: seen.append((args, kwargs))
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert len(seen) == 1


def test_internals_of_tensors() -> None:
    x = paddle.arange(6, dtype="float32").reshape([3, 2])
    part = x._slice(1, 3)
    part.fill_(9.0)
    assert x.tolist() == [[0.0, 1.0], [9.0, 9.0], [9.0, 9.0]], "a view"
    assert (part._offset(), part._holder_size()) == (8, 24)
    assert x.transpose([1, 0])._slice(1, 2).tolist() == [[1.0, 9.0, 9.0]]
    with pytest.raises(IndexError, match=r"rows 1 to 9 of a tensor of shape \[3, 2\]"):
        x._slice(1, 9)
    copy = x._copy_to(paddle.CPUPlace(), True)
    copy.fill_(0.0)
    assert x.tolist()[1] == [9.0, 9.0]
    with pytest.raises(DeviceNotFound, match="cuda"):
        x._copy_to("gpu:0", True)
    x.stop_gradient = False
    assert x._grad_ivar() is None
    (x * 2).sum().backward()
    assert x._grad_ivar().tolist() == [[2.0, 2.0]] * 3
    x._zero_grads()
    assert x.grad.tolist() == [[0.0, 0.0]] * 3
    copy._clear()
    assert not copy._is_initialized()
    with pytest.raises(RuntimeError, match="cleared"):
        copy.numpy()
    copy.set_value(np.ones((3, 2), "float32"))
    assert copy.tolist() == [[1.0, 1.0]] * 3


def test_iterators_of_loaders_have_a_length() -> None:
    loader = paddle.io.DataLoader(paddle.io.TensorDataset([paddle.ones([10, 2])]), batch_size=4)
    batches = iter(loader)
    assert len(batches) == 3
    next(batches)
    assert len(batches) == 3, "the number of the epoch, as in Paddle"
    assert len(list(batches)) == 2

    class Stream(paddle.io.IterableDataset):
        def __iter__(self) -> Any:
            yield np.ones(3)

    with pytest.raises(TypeError, match="no length"):
        len(iter(paddle.io.DataLoader(Stream())))


def test_inner_names() -> None:
    core = paddle.framework.core
    core._set_prim_backward_blacklist("tanh_grad", "add_grad")
    assert isinstance(paddle.float32, core.DataType)
    assert core.DataType.BFLOAT16 is paddle.bfloat16
    assert not isinstance("float32", core.DataType)
    assert core.size_of_dtype(paddle.float16) == 2
    assert paddle.base.libpaddle.Generator().manual_seed(3).initial_seed() == 3
    assert paddle.paddle.nn is paddle.nn
    assert (paddle.int, paddle.long) == (paddle.int32, paddle.int64)
    assert paddle.framework.LayerHelper is paddle.base.layer_helper.LayerHelper
    assert core._has_grad()
    tracer = paddle.base.framework._dygraph_tracer()
    assert tracer._has_grad
    tracer._has_grad = False
    assert not paddle.is_grad_enabled()
    tracer._has_grad = True
    with paddle.no_grad():
        assert not core._has_grad()
        assert not paddle.base.framework._dygraph_tracer()._has_grad
    assert str(paddle.device._convert_to_place("cpu")) == "Place(cpu)"
    with paddle.framework._no_check_dy2st_diff():
        pass
    assert paddle.framework.recall_error.check_naninf(paddle.to_tensor([1.0])) is None
    assert "LossNan" in paddle.framework.recall_error.check_naninf(paddle.to_tensor([np.nan, np.inf]))
    assert "LossInf" in paddle.framework.recall_error.check_naninf(paddle.to_tensor([1.0, np.inf]))


def test_functions_for_one_mode_only() -> None:
    framework = paddle.base.framework

    @framework.non_static_only
    def dynamic() -> int:
        return 3

    @framework.static_only
    def static() -> int:
        return 4

    assert dynamic() == 3
    assert dynamic.__name__ == "dynamic"
    with pytest.raises(AssertionError, match=r"static\(\) is for static mode only"):
        static()
    paddle.enable_static()
    try:
        assert static() == 4
        with pytest.raises(AssertionError, match=r"dynamic\(\) is for dynamic mode only: call paddle\.disable_static"):
            dynamic()
    finally:
        paddle.disable_static()


def test_the_class_of_tensors_under_the_name_of_paddle() -> None:
    code = (
        "import paddle, pickle; x = paddle.ones([1]); print(type(x), type(pickle.loads(pickle.dumps(x))));"
        "from argosy import as_paddle; as_paddle.uninstall(); print(type(x))"
    )
    made = [sys.executable, "-c", "import argosy.as_paddle;" + code]
    found = subprocess.run(made, capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == [
        "<class 'paddle.Tensor'> <class 'paddle.Tensor'>",
        "<class 'argosy.Tensor'>",
    ]


def test_flags_of_the_wheel_are_kept_and_said_once_to_mean_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "_FLAGS", dict(flags._FLAGS))
    monkeypatch.setattr(flags, "_said", set())
    with pytest.warns(UserWarning, match="FLAGS_save_cf_stack_op is kept and changes nothing here"):
        paddle.set_flags({"FLAGS_save_cf_stack_op": 1})
    assert paddle.get_flags("FLAGS_save_cf_stack_op") == {"FLAGS_save_cf_stack_op": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paddle.set_flags({"FLAGS_save_cf_stack_op": False})
        paddle.set_flags({"FLAGS_prim_enable_dynamic": paddle.get_flags("FLAGS_prim_enable_dynamic").popitem()[1]})
    with pytest.warns(UserWarning, match="FLAGS_use_stride_kernel"):
        paddle.set_flags({"FLAGS_use_stride_kernel": False})
    with pytest.raises(ValueError, match="flag FLAGS_use_stride_kernels is unknown; there are FLAGS_use_stride_kernel"):
        paddle.set_flags({"FLAGS_use_stride_kernels": False})
    with pytest.raises(TypeError, match="FLAGS_use_stride_kernel should be a bool, got 'no'"):
        paddle.set_flags({"FLAGS_use_stride_kernel": "no"})
    with pytest.raises(TypeError, match="FLAGS_allocator_strategy should be a string, got 3"):
        paddle.set_flags({"FLAGS_allocator_strategy": 3})


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("AbsmaxQuantizer", {}, [11.23529243]),
        ("PerChannelAbsmaxQuantizer", {}, [10.05789661, 7.08510447, 6.94390583, 7.49134779]),
        ("HistQuantizer", {"hist_percent": 0.99}, [5.38199449]),
        ("KLQuantizer", {}, [9.76691527]),
        ("KLQuantizer", {"quant_bits": 4}, [6.53882032]),
    ],
)
def test_quantizers_of_older_configurations(name: str, options: dict[str, Any], wanted: list[float]) -> None:
    """Thresholds that the wheel finds of the same three tensors."""
    quantizer, rng = getattr(paddle.quantization, name)(**options), np.random.default_rng(0)
    layer = paddle.nn.Linear(3, 4)
    for scale in (1.0, 2.5, 0.7):
        values = (rng.standard_normal((300, 40)) * scale).astype("float32")
        quantizer.sample_data(layer, (paddle.to_tensor(values),))
    quantizer.cal_thresholds()
    np.testing.assert_allclose(np.ravel(quantizer.thresholds)[:4], wanted, rtol=1e-6)


def test_older_configurations_of_quantisation() -> None:
    quantization = paddle.quantization
    assert type(quantization.default_ptq_config.wt_quantizer) is quantization.PerChannelAbsmaxQuantizer
    given = quantization.AbsmaxQuantizer()
    made = quantization.PTQConfig(given, given)
    assert made.in_act_quantizer is not made.out_act_quantizer
    assert not made.enable_in_act_quantizer
    with pytest.raises(TypeError, match="activation_quantizer"):
        quantization.PTQConfig(quantization.PerChannelAbsmaxQuantizer(), given)
    assert quantization.base_observer.BaseObserver is quantization.BaseObserver


def test_settings_of_layers_may_be_integers_of_numpy() -> None:
    n, nn = np.int64, paddle.nn
    assert nn.Pad1D(n(2), mode="reflect")(paddle.ones([1, 1, 5])).shape == [1, 1, 9]
    conv = nn.Conv2D(1, 1, n(3), stride=n(2), padding=n(1), dilation=n(1))
    assert conv(paddle.ones([1, 1, 5, 5])).shape == [1, 1, 3, 3]
    assert nn.Conv1DTranspose(1, 1, n(3), stride=n(2))(paddle.ones([1, 1, 5])).shape == [1, 1, 11]
    assert nn.LayerNorm(n(5))(paddle.ones([1, 5])).shape == [1, 5]
    assert nn.Unfold(n(2))(paddle.ones([1, 1, 4, 4])).shape == [1, 4, 9]
    with pytest.raises(ValueError, match="no negative numbers"):
        nn.Conv2D(1, 1, 3, padding=n(-1))


def test_fake_quantisation_of_channels() -> None:
    """Values that the wheel gives, and gradients that pass as they come."""
    x = paddle.to_tensor([[1.0, -2.0, 0.3], [0.5, 0.25, 4.0]])
    x.stop_gradient = False
    scale, quantise = paddle.zeros([2]), paddle._legacy_C_ops.fake_channel_wise_quantize_dequantize_abs_max
    out, _ = quantise(x, paddle.zeros([2, 3]), scale, "bit_length", 4, "quant_axis", 0)
    out.sum().backward()
    np.testing.assert_allclose(out.numpy(), [[1.1428572, -2.0, 0.2857143], [0.5714286, 0.0, 4.0]], rtol=1e-6)
    assert scale.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [[1.0] * 3] * 2


def test_what_quantisation_libraries_import() -> None:
    from argosy.base.data_feeder import check_variable_and_dtype
    from argosy.base.framework import _create_tensor
    from argosy.framework import IrGraph
    from argosy.nn.quant.quantized_linear import weight_quantize
    from argosy.static.quantization import PostTrainingQuantization

    assert callable(check_variable_and_dtype)
    assert weight_quantize is paddle.nn.quant.weight_quantize
    made = _create_tensor(name="scale", shape=[3], dtype="float32", persistable=True)
    assert made.name == "scale"
    assert made.shape == [3]

    class Quantisation(PostTrainingQuantization):
        pass

    for name in (IrGraph, Quantisation):
        with pytest.raises(NotImplementedError, match="programs are PIR"):
            name()
    flash = paddle.nn.functional.flash_attention
    assert flash.flashmask_attention is paddle.nn.functional.flashmask_attention
    layers = [paddle.nn.BatchNorm2D(2), paddle.nn.Embedding(2, 2), paddle.nn.Conv2DTranspose(1, 1, 1)]
    assert vars(layers[0])["_name"] is None
    assert vars(layers[1])["_is_distributed"] is False
    assert layers[2]._padding_mode == "zeros"
    layers[0]._check_data_format("NCHW")
    with pytest.raises(ValueError, match="channels second or last"):
        layers[0]._check_data_format("WHO")


def test_sizes_of_linear_layers_may_be_properties_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ppdiffusers puts them into the class."""
    layer = paddle.nn.Linear(2, 3)
    assert (layer.in_features, layer.out_features) == (2, 3)
    layer.in_features = 5
    assert layer.in_features == 5
    monkeypatch.setattr(paddle.nn.Linear, "out_features", property(lambda self: self.weight.shape[1]))
    assert paddle.nn.Linear(2, 4).out_features == 4


def test_batch_norm_as_an_operator() -> None:
    rng = np.random.default_rng(3)
    x = paddle.to_tensor(rng.standard_normal((4, 2, 3, 3)).astype("float32"))
    layer, mean, variance = paddle.nn.BatchNorm2D(2), paddle.zeros([2]), paddle.ones([2])
    settings = (False, 0.9, 1e-5, "NCHW", False, False)
    arguments = (x, mean, variance, layer.weight, layer.bias)
    out, moved, _, batch_mean, batch_spread, _ = paddle._C_ops.batch_norm(*arguments, *settings)
    np.testing.assert_allclose(out.numpy(), layer(x).numpy(), rtol=1e-6, atol=1e-6)
    assert moved is mean
    np.testing.assert_allclose(mean.numpy(), layer._mean.numpy(), rtol=1e-6, atol=1e-7)
    values = x.numpy().astype("float64")
    np.testing.assert_allclose(batch_mean.numpy(), values.mean((0, 2, 3)), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(batch_spread.numpy(), (values.var((0, 2, 3)) + 1e-5) ** -0.5, rtol=1e-5)
    layer.eval()
    out, *_, batch_mean, batch_spread, _ = paddle._C_ops.batch_norm(*arguments, True, *settings[1:])
    np.testing.assert_allclose(out.numpy(), layer(x).numpy(), rtol=1e-6, atol=1e-6)
    assert batch_mean is None
    assert batch_spread is None


def test_tables_of_operators_that_are_quantised() -> None:
    """Sizes of the wheel's tables."""
    tables = paddle.static.quantization.quant_config
    assert len(tables.SUPPORT_ACT_QUANTIZATION_OP_DICT) == 89
    assert len(tables.SUPPORT_QUANTIZATION_OP_DICT) == 92
    assert tables.SUPPORT_WEIGHT_QUANTIZATION_OP_DICT["conv2d"] == [["Input", "Filter"], ["Output"]]


def test_a_parameter_takes_what_is_assigned_to_it() -> None:
    """As pruning does; it stays a parameter, and a value with a history is refused as any change of a leaf is."""
    layer = paddle.nn.Linear(2, 1)
    weight = layer.weight
    assert paddle.assign(np.array([[1.0], [2.0]], "float32"), output=weight) is weight
    assert (weight.tolist(), weight.is_leaf, weight.stop_gradient) == ([[1.0], [2.0]], True, False)
    layer(paddle.ones([1, 2])).backward()
    assert weight.grad.tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="leaf tensor"):
        paddle.assign(weight * 2, output=weight)


def test_subclasses_quantise_in_steps() -> None:
    """They call Paddle's two steps with the model and its settings."""
    quanter = paddle.quantization.quanters.FakeQuanterWithAbsMaxObserver()

    class Weights(paddle.quantization.QAT):
        def quantize(self, model: Any, inplace: bool = False) -> Any:
            self._config._specify(model)
            self._convert_to_quant_layers(model, self._config)
            before = [type(layer).__name__ for layer in model]
            self._insert_activation_observers(model, self._config)
            return before, [type(layer).__name__ for layer in model]

    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.ReLU())
    before, after = Weights(paddle.quantization.QuantConfig(quanter, quanter)).quantize(model)
    assert (before, after) == (["QuantedLinear", "ReLU"], ["QuantedLinear", "ObserveWrapper"])

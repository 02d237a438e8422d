"""Public names that few programs use do what they say."""

import pickle
import sys
from importlib import import_module

import numpy as np
import pytest

import argosy as paddle


def test_dense_tensors_are_dense_and_can_be_set():
    """A dense tensor is its own dense form, takes values by set_tensor, and has no positions."""
    x = paddle.zeros([2])
    assert x.to_dense() is x
    x.set_tensor(paddle.ones([2]))
    assert x.tolist() == [1.0, 1.0]
    for name in ("values", "crows"):
        with pytest.raises(NotImplementedError, match="sparse tensors"):
            getattr(x, name)()


@pytest.mark.parametrize("rank", [1, 3])
def test_adaptive_pools_tell_whether_they_give_places(rank):
    """return_indices is what return_mask was."""
    assert getattr(paddle.nn, f"AdaptiveMaxPool{rank}D")(2, return_mask=True).return_indices


def test_a_volume_is_convolved():
    """A kernel of ones over a volume of ones counts its elements."""
    layer = paddle.nn.Conv3D(1, 1, 2, weight_attr=paddle.nn.initializer.Constant(1.0), bias_attr=False)
    assert layer(paddle.ones([1, 1, 3, 3, 3])).numpy().ravel().tolist() == [8.0] * 8


def test_synchronised_normalisation_of_one_rank_is_that_of_a_batch():
    """With one rank the statistics are those of its own batch."""
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((4, 3)).astype("float32"))
    found = paddle.nn.SyncBatchNorm(3)(x)
    np.testing.assert_allclose(found.numpy(), paddle.nn.BatchNorm1D(3)(x).numpy(), rtol=1e-6, atol=1e-6)


def test_optimizers_clear_gradients_by_both_names():
    """zero_grad is clear_grad."""
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.zero_grad()
    assert not any(np.any(p.grad.numpy()) for p in layer.parameters() if p.grad is not None)


def test_a_cell_names_the_dtype_of_its_states():
    """The base refuses; a subclass's dtype is taken."""
    with pytest.raises(NotImplementedError, match="state_dtype"):
        _ = paddle.nn.RNNCellBase().state_dtype


def test_models_are_summarised(capsys):
    """Model.summary counts the parameters."""
    model = paddle.Model(paddle.nn.Linear(2, 3), paddle.static.InputSpec([None, 2], "float32"))
    assert model.summary((1, 2)) == {"total_params": 9, "trainable_params": 9}
    assert "9" in capsys.readouterr().out


def test_capture_talks_as_much_as_asked(capsys):
    """The rewritten code is shown from level 1 on and not at 0; levels are numbers."""

    def double(x):
        if x.sum() > 0:
            x = x * 2
        return x

    shown = []
    for level in (1, 0):
        paddle.jit.set_code_level(level)
        paddle.jit.to_static(double, full_graph=True)(paddle.ones([2]))
        shown.append("def double" in capsys.readouterr().err)
    assert shown == [True, False]
    for function in (paddle.jit.set_verbosity, paddle.jit.set_code_level):
        function(0)
        with pytest.raises(ValueError, match="level"):
            function("loud")


def test_breaks_of_a_graph_are_told_as_much_as_asked(capsys):
    """Where a graph breaks is said at level 1, not at 0."""

    def broken(x):
        return x * float(x.sum())

    told = []
    for level in (1, 0):
        paddle.jit.set_verbosity(level)
        paddle.jit.to_static(broken, full_graph=False)(paddle.ones([2]))
        told.append(bool(capsys.readouterr().err))
    assert told == [True, False]


def test_a_loaded_layer_stays_in_evaluation(tmp_path):
    """A program that was saved computes the same in evaluation, and shows itself."""
    layer = paddle.nn.Linear(2, 3)
    layer.eval()
    path = str(tmp_path / "layer")
    paddle.jit.save(layer, path, input_spec=[paddle.static.InputSpec([1, 2], "float32")])
    loaded = paddle.jit.load(path)
    loaded.eval()
    x = paddle.ones([1, 2])
    np.testing.assert_allclose(loaded(x).numpy(), layer(x).numpy(), rtol=1e-6)
    assert str(loaded.program()).startswith("program @forward")


def test_checks_of_numerics_can_be_stopped():
    """A configuration starts and stops the checks of a step."""
    config = paddle.amp.debugging.TensorCheckerConfig(True, paddle.amp.debugging.DebugMode.CHECK_NAN_INF_AND_ABORT)
    config.stop_check_nan_inf()
    assert np.isnan((paddle.zeros([1]) / paddle.zeros([1])).item())


def test_contexts_of_layers_take_marks():
    """Marks that change nothing here are taken, and the derivative is the user's."""

    class Double(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            ctx.mark_not_inplace(x)
            ctx.set_grad_in_dtype_consistent(True)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 5.0

    x = paddle.ones([2], dtype="float32")
    x.stop_gradient = False
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_parameters_are_trained_unless_told():
    """trainable is the opposite of stop_gradient; initialize fills what the guard left empty."""
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 3, weight_attr=paddle.nn.initializer.Constant(0.25))
    layer.weight.initialize()
    assert layer.weight.numpy().ravel().tolist() == [0.25] * 6
    assert layer.weight.trainable
    layer.weight.trainable = False
    assert layer.weight.stop_gradient


def test_older_scripts_find_the_inner_package():
    """base holds flags, devices and dynamic mode, and leaves static mode as it was."""
    paddle.base.set_flags({"FLAGS_use_stride_kernel": True})
    assert not paddle.is_compiled_with_cuda()
    paddle.enable_static()
    try:
        with paddle.base.dygraph.guard(paddle.base.CPUPlace()):
            assert paddle.in_dynamic_mode()
            assert paddle.base.dygraph.to_variable(np.ones(2), name="a").name == "a"
        assert not paddle.in_dynamic_mode()
    finally:
        paddle.disable_static()


def test_tensors_are_the_frameworks():
    """The class is shown, and pickled, by the name that users know."""
    assert repr(type(paddle.ones([1]))) == "<class 'argosy.Tensor'>"
    assert pickle.loads(pickle.dumps(paddle.Tensor)) is paddle.Tensor


@pytest.mark.parametrize("kind", ["Normal", "Uniform", "TruncatedNormal"])
def test_initialisers_refuse_what_is_no_number_by_name(kind):
    """The error names the argument."""
    name = "low" if kind == "Uniform" else "mean"
    with pytest.raises(TypeError, match=f"argument '{name}'"):
        getattr(paddle.nn.initializer, kind)("a")


def test_a_loop_over_a_subset_ends():
    """An index beyond the end is an IndexError, by which Python's loops over sequences end."""
    assert list(paddle.io.Subset(range(1, 4), [0, 2])) == [1, 3]


def test_the_summary_is_laid_out_as_paddles(capsys):
    """Columns of 15, 20, 20 and 15 characters, and sizes in MiB."""
    with paddle.utils.unique_name.guard():  # layers are numbered by their names
        paddle.summary(paddle.nn.Sequential(paddle.nn.Linear(256, 1024)), (4, 256))
    lines = capsys.readouterr().out.split("\n")
    assert lines[0] == "-" * 75
    assert lines[1] == " Layer (type)       Input Shape          Output Shape         Param #    "
    assert lines[3] == "   Linear-1          [[4, 256]]           [4, 1024]           263,168    "
    assert lines[9:13] == [
        "Input size (MB): 0.00",
        "Forward/backward pass size (MB): 0.03",
        "Params size (MB): 1.00",
        "Estimated Total Size (MB): 1.04",
    ]


def test_gelu_is_exact_unless_tanh_is_asked_for():
    """The words "none" and "tanh" stand for False and True; others are refused."""
    x = paddle.to_tensor([-1.0, 0.5, 1.0])
    gelu = paddle.nn.functional.gelu
    np.testing.assert_array_equal(paddle.nn.GELU("none")(x).numpy(), gelu(x).numpy())
    np.testing.assert_allclose(gelu(x, "tanh").numpy(), gelu(x, True).numpy(), rtol=1e-6)
    assert abs(float(gelu(x, "tanh")[0]) - float(gelu(x)[0])) > 1e-4
    with pytest.raises(ValueError, match="approximate should be"):
        gelu(x, "erf")


def test_asarray_has_no_past():
    """It shares memory and takes no gradient to its source."""
    x = paddle.ones([2])
    x.stop_gradient = False
    y = paddle.asarray(x * 2)
    assert y.stop_gradient
    assert not x.stop_gradient


def test_stages_of_resnet_are_made_for_subclasses():
    """Users' networks make stages by _make_layer, with blocks of their own, and dilated instead of strided."""
    seen = []

    class Block(paddle.nn.Layer):
        expansion = 2

        def __init__(
            self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
        ):
            super().__init__()
            seen.append((inplanes, planes, stride, downsample is None, dilation, norm_layer))

    net = paddle.vision.models.ResNet(paddle.vision.models.resnet.BasicBlock, 18, num_classes=0)
    net.inplanes = 8
    stage = net._make_layer(Block, 8, 2, stride=2, dilate=True)
    norm = paddle.nn.BatchNorm2D
    assert len(stage) == 2
    assert seen == [(8, 8, 1, False, 1, norm), (16, 8, 1, True, 1, norm)]
    assert (net.inplanes, net.dilation) == (16, 2)


def test_what_is_not_there_says_so(monkeypatch):
    """ONNX needs Paddle's converter, and then Paddle's files; remote calls name what there is instead."""
    with pytest.raises(ImportError, match="paddle2onnx"):
        paddle.onnx.export(paddle.nn.Linear(1, 1), "model")
    monkeypatch.setitem(sys.modules, "paddle2onnx", sys)
    with pytest.raises(NotImplementedError, match="program files"):
        paddle.onnx.export(paddle.nn.Linear(1, 1), "model")
    calls = {"init_rpc": ("a",), "rpc_sync": ("a", len), "rpc_async": ("a", len), "shutdown": ()}
    calls |= {"get_worker_info": ("a",), "get_all_worker_infos": (), "get_current_worker_info": ()}
    for name, arguments in calls.items():
        with pytest.raises(NotImplementedError, match=name):
            getattr(paddle.distributed.rpc, name)(*arguments)


def test_compat_delivers_to_out_and_restarts_the_generator():
    """``out`` receives values and indices; ``compat.seed`` tells a seed that gives the same draws again."""
    compat, x = paddle.compat, paddle.to_tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    values, indices = paddle.zeros([2]), paddle.zeros([2], "int64")
    found = compat.max(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([3.0, 6.0], [0, 1])
    assert found.values.tolist() == [3.0, 6.0]
    shares = paddle.zeros([2, 3])
    assert compat.nn.functional.softmax(x, 1, out=shares) is shares
    np.testing.assert_allclose(shares.numpy().sum(1), 1.0, rtol=1e-6)
    whole = paddle.zeros([])
    compat.min(x, out=whole)
    assert whole.item() == 1.0
    with pytest.raises(TypeError, match="'out'"):
        compat.sort(x, out=values)
    with pytest.raises(TypeError, match="'out'"):
        compat.max(x, out=[values])
    number = compat.seed()
    first = paddle.rand([4])
    paddle.seed(number)
    assert first.tolist() == paddle.rand([4]).tolist()
    assert compat.seed() != number


def test_layers_of_compat_start_as_their_functions_say():
    """The linear layer's weight is [out, in], within 1 / sqrt(out); names in small letters are the same classes."""
    layer = paddle.compat.nn.Linear(16, 8)
    assert layer.weight.shape == [8, 16]
    assert float(layer.weight.abs().max()) <= 8**-0.5
    assert float(layer.bias.abs().max()) <= 0.25
    assert paddle.compat.nn.AvgPool2d is paddle.compat.nn.AvgPool2D


def test_states_of_optimizers_are_loaded_by_three_names():
    """load_state_dict and set_dict are set_state_dict, also of those that define it anew."""
    layer = paddle.nn.Linear(2, 1)
    for make in (paddle.optimizer.Adam, paddle.optimizer.LBFGS):
        optimizer = make(parameters=layer.parameters())
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.set_dict(optimizer.state_dict())
    with pytest.raises(ValueError, match="does not have"):
        paddle.optimizer.SGD(parameters=layer.parameters()).load_state_dict({"other_w_0": np.zeros(2)})


def test_questions_about_devices_that_are_not_here():
    """Scripts may ask by every name; what needs the device says that it is not there."""
    for module in (paddle.cuda, paddle.device.xpu, paddle.device.custom_device):
        assert module.device_count() == 0
        with pytest.raises(ValueError, match="there is no"):
            module.memory_allocated()
        assert all(hasattr(module, name) for name in module.__all__)
    assert (paddle.cuda.is_available(), paddle.cuda.is_initialized(), paddle.cuda.current_device()) == (False, False, 0)
    paddle.cuda.manual_seed_all(3)
    first = paddle.rand([2]).numpy()
    paddle.cuda.manual_seed_all(3)
    assert (first == paddle.rand([2]).numpy()).all()
    with pytest.raises(ValueError, match="no CUDA device"):
        paddle.cuda.check_error(1)
    version = paddle.version
    assert (version.hip(), version.tensorrt(), version.cuda_archs(), version.xpu_xhpc()) == (None, "None", [], "False")


ABSENT = {
    "utils.cpp_extension": ("CppExtension", "load", "setup", "extension_utils.load_op_meta_info_and_register_op"),
    "sysconfig": ("get_include", "get_lib"),
    "cost_model": ("CostModel",),
    "compat": ("enable_compat",),
    "static": ("ctr_metric_bundle", "IpuStrategy"),
    "static.nn": ("nce", "sequence_conv", "sparse_embedding"),
    "distributed": ("InMemoryDataset", "QueueDataset", "CountFilterEntry", "ProbabilityEntry", "ShowClickEntry"),
}


@pytest.mark.parametrize("module", ABSENT)
def test_what_is_absent_says_why(module):
    """The names are there to be imported; a call raises NotImplementedError that names them."""
    for name in ABSENT[module]:
        import_module(f"argosy.{module}" + (f".{name.rpartition('.')[0]}" if "." in name else ""))
        function = paddle
        for part in f"{module}.{name}".split("."):
            function = getattr(function, part)
        with pytest.raises(NotImplementedError, match=rf"{name.rpartition('.')[2]} is not implemented: \w"):
            function()
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = paddle.sysconfig.nothing


def test_layers_of_programs_name_their_parameters():
    """By the layer, as layers do; deform_conv2d without offsets is a convolution."""
    snn, rng = paddle.static.nn, np.random.default_rng(0)
    x = paddle.to_tensor(rng.standard_normal((1, 2, 5, 5)).astype("float32"))
    with paddle.utils.unique_name.guard():
        program = paddle.static.Program()
        paddle.enable_static()
        try:
            with paddle.static.program_guard(program):
                held = paddle.static.data("x", [1, 2, 5, 5], "float32")
                zero = paddle.zeros([1, 18, 3, 3])
                ones = {"weight_attr": paddle.nn.initializer.Constant(0.5)}
                found = snn.deform_conv2d(held, zero, None, 3, 3, **ones)
                snn.fc(held, 2)
                snn.fc(held, 2, name="last", bias_attr=False)
        finally:
            paddle.disable_static()
    names = [parameter.name for parameter in program.all_parameters()]
    assert names[2:] == ["fc_0.w_0", "fc_0.b_0", "last.w_0"]
    made = paddle.static.Executor().run(program, feed={"x": x.numpy()}, fetch_list=[found])[0]
    expected = paddle.nn.functional.conv2d(x, paddle.full([3, 2, 3, 3], 0.5))
    np.testing.assert_allclose(made, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_heads_before_steps(causal):
    """compat's attention is that of nn.functional with two axes exchanged, and takes fewer heads of keys."""
    rng = np.random.default_rng(0)
    q, k = (paddle.to_tensor(rng.standard_normal((2, heads, 5, 4)).astype("float32")) for heads in (4, 2))
    attend = paddle.compat.nn.functional.scaled_dot_product_attention
    turned = [x.transpose([0, 2, 1, 3]) for x in (q, k, k)]
    expected = paddle.nn.functional.scaled_dot_product_attention(*turned, is_causal=causal, scale=0.3)
    found = attend(q, k, k, is_causal=causal, scale=0.3, enable_gqa=True)
    np.testing.assert_allclose(found.numpy(), expected.transpose([0, 2, 1, 3]).numpy(), rtol=1e-5, atol=1e-6)
    alone = attend(q[0], q[0], q[0], is_causal=causal)
    np.testing.assert_allclose(alone.numpy(), attend(q[:1], q[:1], q[:1], is_causal=causal)[0].numpy(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="attn_mask"):
        attend(q, q, q, attn_mask=paddle.zeros([5, 5]), is_causal=True)


def test_the_corners_of_a_perspective_are_drawn_within_their_part():
    """``RandomPerspective.get_params`` gives the corners of the picture, and where each moves, inwards only."""
    transform = paddle.vision.transforms.RandomPerspective()
    for _ in range(20):
        start, end = transform.get_params(20, 10, 0.5)
        assert start == [[0, 0], [19, 0], [19, 9], [0, 9]]
        moved = np.array(end) - start
        assert (np.abs(moved) <= [5, 2]).all()
        assert (moved * [[1, 1], [-1, 1], [-1, -1], [1, -1]] >= 0).all()
    assert transform.get_params(20, 10, 0.0)[1] == start

"""Layers: names, order, state dicts, hooks, modes."""

from collections import OrderedDict

import numpy as np
import pytest

import argosy as paddle

nn = paddle.nn
ONES = nn.initializer.Constant(1.0)


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.scale = self.create_parameter([3], default_initializer=ONES)
        self.register_buffer("steps", paddle.to_tensor([0]))
        self.register_buffer("scratch", paddle.to_tensor([0]), persistable=False)

    def forward(self, x):
        return self.inner(x) * self.scale


def test_parameters_have_paddles_names():
    """A parameter is called <layer>_<n>.w_0 or .b_0, with one counter for each class."""
    layer = nn.Linear(2, 3)
    assert layer.full_name().startswith("linear_")
    assert layer.weight.name == layer.full_name() + ".w_0"
    assert layer.bias.name == layer.full_name() + ".b_0"
    assert not layer.weight.stop_gradient
    assert layer.weight.is_parameter


def test_state_dict_has_own_members_first_and_no_temporary_buffers():
    """Own parameters, own persistable buffers, then sublayers in order."""
    assert list(Block().state_dict()) == ["scale", "steps", "inner.weight", "inner.bias"]


def test_state_dict_moves_between_layers():
    """set_state_dict copies values by name and reports nothing missing."""
    a, b = Block(), Block()
    assert b.set_state_dict(a.state_dict()) == ([], [])
    np.testing.assert_array_equal(b.inner.weight.numpy(), a.inner.weight.numpy())
    assert b.inner.weight is not a.inner.weight


def test_set_state_dict_warns_about_what_does_not_fit():
    """Missing and misshaped names come back and are warned about; a misshaped one stands in both lists."""
    layer = nn.Linear(2, 3)
    with pytest.warns(UserWarning, match="the expected shape is"):
        missing, unexpected = layer.set_state_dict(
            {"weight": np.zeros((3, 2)), "bias": np.zeros(3), "extra": np.zeros(1)}
        )
    assert missing == ["weight"]
    assert unexpected == ["weight", "extra"]
    with pytest.warns(UserWarning, match="not found"):
        assert layer.set_state_dict({"bias": np.zeros(3)}) == (["weight"], [])


def test_load_state_dict_is_strict_and_changes_nothing_when_it_raises():
    """The strict form names everything that is wrong before it touches a parameter."""
    layer = nn.Linear(2, 3)
    before = layer.weight.numpy()
    with pytest.raises(RuntimeError, match=r"missing bias.*unexpected extra.*weight has shape"):
        layer.load_state_dict({"weight": np.zeros((3, 2)), "extra": np.zeros(1)})
    np.testing.assert_array_equal(layer.weight.numpy(), before)


def test_parameters_are_listed_once_and_attributes_replaced():
    """A shared parameter is listed once; assigning None keeps the name with no parameter behind it."""
    block = Block()
    block.other = block.inner
    assert len(block.parameters()) == 3
    block.scale = None
    assert block.scale is None
    assert len(block.parameters()) == 2
    with pytest.raises(TypeError, match="is a parameter"):
        block.inner.weight = 3


def test_layer_without_super_init_says_so():
    """Assigning a parameter before super().__init__() explains what is missing."""

    class Bad(nn.Layer):
        def __init__(self):
            self.inner = nn.Linear(1, 1)

    with pytest.raises(RuntimeError, match="super"):
        Bad()


def test_hooks_change_inputs_and_outputs_and_can_be_removed():
    """A pre-hook may replace the inputs, a post-hook the output; a removed hook does not run."""
    layer = nn.Identity()
    pre = layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] + 1,))
    post = layer.register_forward_post_hook(lambda layer, inputs, output: output * 10)
    assert layer(1) == 20
    pre.remove()
    assert layer(1) == 10
    post.remove()
    post.remove()
    assert layer(1) == 1


def test_modes_and_apply_reach_every_sublayer():
    """train and eval set the flag everywhere; apply visits children first."""
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Dropout(0.5)))
    model.eval()
    assert not any(layer.training for layer in model.sublayers(include_self=True))
    seen = []
    model.apply(lambda layer: seen.append(type(layer).__name__))
    assert seen == ["Linear", "Dropout", "Sequential", "Sequential"]


@pytest.mark.parametrize(
    ("convert", "steps"),
    [
        (lambda block: block.astype("float64"), paddle.float64),
        (lambda block: block.to(dtype="float64"), paddle.float64),
        (lambda block: block.double(), paddle.float64),
        (lambda block: block.astype("float64").float(), paddle.float32),
        (lambda block: block.float(), paddle.int64),
        (lambda block: block.bfloat16(), paddle.int64),
        (lambda block: block.to("cpu"), paddle.int64),
    ],
)
def test_integer_buffers_are_converted_where_paddle_does(convert, steps):
    """By `to`, `astype` and `double`; `float` and its narrow forms take what is floating. Members stay who they are."""
    block = Block()
    scale, values = block.scale, block.steps.numpy()
    convert(block)
    assert block.scale is scale
    assert block.scale.is_parameter
    assert block.steps.dtype is steps
    assert (block.steps.numpy() == values).all()


def test_real_parts_are_left_of_complex_buffers():
    """A complex buffer becomes a real one without a warning."""
    layer = nn.Layer()
    layer.register_buffer("z", paddle.to_tensor([1 + 2j]))
    assert layer.to(dtype="float32").z.tolist() == [1.0]


def test_a_layer_shows_its_dtype_as_paddle_does():
    """A name as made and after `to`, a dtype after `astype` and its short forms; state dicts are ordered ones."""
    layer = nn.Linear(2, 2)
    shown = [repr(layer), repr(layer.astype("float64")), repr(layer.float()), repr(layer.to(dtype="float64"))]
    dtypes = ["float32", "paddle.float64", "paddle.float32", "float64"]
    assert shown == [f"Linear(in_features=2, out_features=2, dtype={d})" for d in dtypes]
    assert type(layer.state_dict()) is OrderedDict


@pytest.mark.parametrize("p", [1.5, -0.25])
@pytest.mark.parametrize("training", [True, False])
def test_a_probability_is_checked_in_evaluation_as_well(p, training):
    for drop in (nn.functional.dropout, nn.functional.dropout2d, nn.functional.alpha_dropout):
        with pytest.raises(ValueError, match="p is a probability"):
            drop(paddle.ones([1, 1, 2, 2]), p=p, training=training)


@pytest.mark.parametrize(
    ("pad", "mode", "said"),
    [
        ([1, 1, 1], "constant", "two counts for each of at most 3 axes"),
        ([1] * 8, "constant", "two counts for each of at most 3 axes"),
        ([5, 5], "reflect", "needs more than the 2 of axis 2"),
    ],
)
def test_pads_that_do_not_fit_are_refused_by_name(pad, mode, said):
    with pytest.raises(ValueError, match=said):
        nn.functional.pad(paddle.ones([1, 2, 2]), pad, mode, data_format="NCL")


def test_attr_false_makes_no_parameter():
    """bias_attr=False leaves the attribute None; a ParamAttr sets name, rate and trainability."""
    layer = nn.Linear(
        2, 2, weight_attr=paddle.ParamAttr(name="mine", learning_rate=0.5, trainable=False), bias_attr=False
    )
    assert layer.bias is None
    assert layer.weight.name == "mine"
    assert layer.weight.stop_gradient
    assert layer.weight.optimize_attr == {"learning_rate": 0.5}


def test_containers_index_and_grow():
    """Sequential, LayerList and LayerDict behave as sequences and dictionaries."""
    seq = nn.Sequential(("a", nn.Identity()), ("b", nn.Linear(1, 2)))
    assert seq["a"] is seq[0]
    assert len(seq[0:1]) == 1
    layers = nn.LayerList([nn.Identity()])
    layers.append(nn.Linear(1, 1)).insert(0, nn.ReLU())
    assert [type(layer).__name__ for layer in layers] == ["ReLU", "Identity", "Linear"]
    del layers[0]
    assert list(layers.state_dict()) == ["1.weight", "1.bias"]
    with pytest.raises(IndexError, match="has no layer 5"):
        layers[5]
    table = nn.LayerDict({"x": nn.Identity()})
    assert "x" in table


def test_gpt_refuses_sequences_beyond_its_positions():
    """A sequence longer than the learned positions is an error, not a wrong answer."""
    from argosy.models import GPT, GPTConfig

    model = GPT(GPTConfig(positions=4, width=8, layers=1, heads=2))
    assert model(paddle.to_tensor(np.zeros((1, 4), np.int64))).shape == [1, 4, 256]
    with pytest.raises(ValueError, match="5 tokens is longer than the 4 positions"):
        model(paddle.to_tensor(np.zeros((1, 5), np.int64)))


def test_seed_rms_norm_runs_eagerly():
    """The announcement's RMSNorm layer equals its formula in numpy."""

    class RMSNorm(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.variance_epsilon = 1e-6
            self.weight = paddle.create_parameter(shape=[768], dtype="float32", default_initializer=ONES)

        def forward(self, x):
            variance = x.pow(2).mean(-1, keepdim=True)
            x = paddle.rsqrt(variance + self.variance_epsilon) * x
            return x * self.weight

    x = np.random.default_rng(0).standard_normal((4, 768)).astype(np.float32)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(RMSNorm()(paddle.to_tensor(x)).numpy(), expected, rtol=1e-6, atol=1e-6)


def test_parameters_follow_the_default_dtype():
    """Of layers of every kind and of a user's own; a dtype that is given wins."""

    class Own(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.create_parameter([2])

    nn = paddle.nn
    paddle.set_default_dtype("float64")
    try:
        layers = [nn.Linear(2, 2), nn.Conv2D(2, 2, 1), nn.LayerNorm(2), nn.Embedding(2, 2), nn.LSTM(2, 2), Own()]
        given = nn.Layer.create_parameter(nn.Layer(), [2], dtype="float32")
    finally:
        paddle.set_default_dtype("float32")
    assert {p.dtype for layer in layers for p in layer.parameters()} == {paddle.float64}
    assert given.dtype == paddle.float32


def test_a_hook_that_is_always_called_runs_after_an_exception_as_well():
    class Broken(nn.Layer):
        def forward(self, x):
            raise ArithmeticError("broken")

    seen = []
    layer = Broken()
    layer.register_forward_post_hook(lambda *given: seen.append("plain"))
    layer.register_forward_post_hook(lambda _layer, inputs, outputs: seen.append((inputs, outputs)), always_call=True)
    with pytest.raises(ArithmeticError, match="broken"):
        layer(3)
    assert seen == [((3,), None)]


def test_a_hook_that_is_always_called_runs_once_and_after_a_hook_that_raises():
    seen = []

    def fails(*given):
        raise ArithmeticError("in a hook")

    layer = nn.Linear(2, 3)
    x = paddle.ones([1, 2])
    handle = layer.register_forward_post_hook(lambda _layer, _inputs, y: seen.append(y.shape), always_call=True)
    layer(x)
    assert seen == [[1, 3]]
    failing = layer.register_forward_post_hook(fails, prepend=True)
    with pytest.raises(ArithmeticError, match="in a hook"):
        layer(x)
    assert seen == [[1, 3], [1, 3]]
    layer.register_forward_post_hook(fails, always_call=True)
    with pytest.raises(ArithmeticError, match="in a hook"), pytest.warns(UserWarning, match="always called raised"):
        layer(x)
    handle.remove()
    failing.remove()


def test_load_state_dict_by_assignment_takes_over_storage_and_dtype():
    layer, weight = nn.Linear(2, 3, bias_attr=False), paddle.ones([2, 3], "float64")
    layer.load_state_dict({"weight": weight}, assign=True)
    assert layer.weight.dtype == paddle.float64
    weight[0, 0] = 5.0
    assert layer.weight[0, 0].item() == 5.0


def test_short_conversions_leave_excluded_classes_alone():
    net = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.BatchNorm(3))
    net.bfloat16()
    assert [p.dtype for p in net.parameters()] == [paddle.bfloat16] * 4 + [paddle.float32] * 4
    net.float(excluded_layers=[nn.LayerNorm])
    assert [p.dtype for p in net.parameters()][:4] == [paddle.float32] * 2 + [paddle.bfloat16] * 2
    with pytest.raises(TypeError, match="excluded_layers"):
        net.float16(excluded_layers="Linear")


def test_a_layer_is_not_replaced_by_a_number():
    """Assigning anything but a layer or None in the place of a layer raises TypeError, as in Paddle."""
    model = paddle.nn.Layer()
    model.head = paddle.nn.Linear(2, 2)
    with pytest.raises(TypeError, match="head"):
        model.head = 5
    model.head = None
    assert model.head is None


def test_a_line_about_a_layer_stands_beside_its_name():
    """As in Paddle, one line of ``extra_repr`` comes before the sublayers without a line of its own."""

    class Shown(paddle.nn.Layer):
        def extra_repr(self):
            return self.text

    model = Shown()
    model.act = paddle.nn.ReLU()
    model.text = "size=1"
    assert repr(model) == "Shown(size=1\n  (act): ReLU()\n)"
    model.text = "size=1\ndepth=2"
    assert repr(model) == "Shown(\n  size=1\n  depth=2\n  (act): ReLU()\n)"


@pytest.mark.parametrize("wrong", [{"initializer": 3}, {"initializer": "uniform"}, {"name": 3}])
def test_attributes_of_another_kind_are_refused(wrong):
    with pytest.raises(TypeError, match=rf"argument '{next(iter(wrong))}'"):
        paddle.ParamAttr(**wrong)


def test_activations_of_older_layers():
    """Operators' names with their defaults (hard_sigmoid's slope is 0.2, that of F.hardsigmoid 1/6), as recorded from
    the wheel; another name is refused."""
    x = paddle.to_tensor([[-7.0], [-2.5], [-0.3], [0.2], [0.7], [2.2], [6.5], [50.0]])
    expected = {
        "hard_sigmoid": [0.0, 0.0, 0.44, 0.54, 0.64, 0.94, 1.0, 1.0],
        "hard_swish": [0.0, -0.2083, -0.135, 0.1067, 0.4317, 1.9067, 6.5, 50.0],
        "brelu": [0.0, 0.0, 0.0, 0.2, 0.7, 2.2, 6.5, 24.0],
        "logsigmoid": [-7.0009, -2.5789, -0.8544, -0.5981, -0.4032, -0.1051, -0.0015, 0.0],
        "tanh_shrink": [-6.0, -1.5134, -0.0087, 0.0026, 0.0956, 1.2243, 5.5, 49.0],
        "thresholded_relu": [0.0, 0.0, 0.0, 0.0, 0.0, 2.2, 6.5, 50.0],
        "square": [49.0, 6.25, 0.09, 0.04, 0.49, 4.84, 42.25, 2500.0],
    }
    for act, values in expected.items():
        layer = nn.BatchNorm(1, act=act, epsilon=0.0)
        layer.eval()
        np.testing.assert_allclose(layer(x).numpy().ravel(), values, atol=6e-5, err_msg=act)
    with pytest.raises(ValueError, match=r"argument 'act' .* got 'hard_swich'") as refused:
        nn.BatchNorm(1, act="hard_swich")(x)
    for act in str(refused.value).split("one of ")[1].split(";")[0].split(", "):
        assert list(nn.BatchNorm(1, act=act)(x).shape) == [8, 1]

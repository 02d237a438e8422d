"""Mixed precision: what runs in which type, eager and captured, and how losses are scaled."""

import numpy as np
import pytest

import argosy as paddle
from argosy_hwadapt import DeviceNotFound
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.tiering import TieredKernel


def _batch():
    rng = np.random.default_rng(0)
    return paddle.to_tensor(rng.standard_normal((8, 4)).astype("float32"))


def _product(x):
    """x times its transpose."""
    return paddle.nn.functional.linear(x, paddle.transpose(x, [1, 0]))


def test_lists_decide_the_types_of_results():
    """White operators compute in the half type, black ones in float32, others in the widest type of their operands."""
    x = _batch()
    with paddle.amp.auto_cast(dtype="bfloat16"):
        half = _product(x)
        assert half.dtype is paddle.bfloat16
        assert paddle.exp(half).dtype is paddle.float32
        assert paddle.nn.functional.relu(half).dtype is paddle.bfloat16
        assert (half + paddle.ones([8, 8])).dtype is paddle.float32
        assert paddle.concat([half, paddle.ones([8, 8])]).dtype is paddle.float32
        assert _product(x.cast("float64")).dtype is paddle.float64
    assert _product(x).dtype is paddle.float32


def test_results_have_the_precision_of_the_half_type():
    """bfloat16 is really computed with: the result is the product of rounded operands, rounded."""
    x = _batch()
    with paddle.amp.auto_cast(dtype="bfloat16"):
        y = _product(x).cast("float32").numpy()
    rounded = x.cast("bfloat16").cast("float32").numpy()
    exact = rounded.astype("float64") @ rounded.T.astype("float64")
    assert np.max(np.abs(y - exact) / np.maximum(np.abs(exact), 1e-3)) < 2**-7
    assert not np.array_equal(y, x.numpy() @ x.numpy().T)


def test_custom_lists_and_levels():
    """Custom names win; O0 and enable=False do nothing, within another block too; OD widens what is not white."""
    x = _batch()
    with paddle.amp.auto_cast(dtype="bfloat16", custom_black_list={"linear"}, custom_white_list={"exp"}):
        assert _product(x).dtype is paddle.float32
        assert paddle.exp(x).dtype is paddle.bfloat16
        with paddle.amp.auto_cast(enable=False):
            assert paddle.exp(x).dtype is paddle.float32
        with paddle.amp.auto_cast(level="O1", dtype="float16"):
            assert _product(x).dtype is paddle.float16
        assert paddle.exp(x).dtype is paddle.bfloat16
    with paddle.amp.auto_cast(level="OD", dtype="bfloat16"):
        assert paddle.nn.functional.relu(_product(x)).dtype is paddle.float32
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16", use_promote=False):
        assert paddle.nn.functional.relu(x).dtype is paddle.bfloat16
        assert paddle.mean(x).dtype is paddle.float32


def test_gradients_flow_through_the_casts():
    """Parameters stay float32 and get float32 gradients close to those of float32."""
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2))
    x = _batch()
    model(x).square().mean().backward()
    exact = [p.grad.numpy().copy() for p in model.parameters()]
    model.clear_gradients()
    with paddle.amp.auto_cast(dtype="bfloat16"):
        loss = model(x).square().mean()
    loss.backward()
    for p, wanted in zip(model.parameters(), exact, strict=True):
        assert p.grad.dtype is paddle.float32
        np.testing.assert_allclose(p.grad.numpy(), wanted, rtol=0.1, atol=0.02)


def _trained(step_of):
    paddle.seed(3)
    model = paddle.nn.Linear(4, 2)
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())

    def step(x):
        with paddle.amp.auto_cast(dtype="bfloat16"):
            out = model(x)
            loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss, out

    run = step_of(step)
    for _ in range(3):
        loss, out = run(_batch())
    return float(loss), out.dtype, model.weight.numpy()


def test_captured_steps_do_what_eager_ones_do():
    """auto_cast within a captured step gives bfloat16 there too, and the same training within its rounding."""
    eager = _trained(lambda f: f)
    captured = _trained(lambda f: paddle.jit.to_static(f, full_graph=True))
    assert captured[1] is eager[1] is paddle.bfloat16
    np.testing.assert_allclose(captured[2], eager[2], rtol=2e-2, atol=2e-3)


def test_captured_functions_called_within_auto_cast_follow_it():
    """One captured function is captured separately for calls under auto_cast, and for calls outside of it."""
    f = paddle.jit.to_static(_product, full_graph=True)
    x = _batch()
    assert f(x).dtype is paddle.float32
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert f(x).dtype is paddle.bfloat16
    assert f(x).dtype is paddle.float32
    assert len(f.compiled) == 2


def test_lists_take_the_names_of_kernels():
    """Scripts list Paddle's older names of kernels; names of no operator are left out, as in Paddle, but told."""
    x = _batch()
    lists = {"custom_white_list": ["elementwise_add", "lookup_table_v2"], "custom_black_list": ["matmul_v2"]}
    with paddle.amp.auto_cast(dtype="bfloat16", **lists):
        assert (x + x).dtype is paddle.bfloat16
        assert _product(x).dtype is paddle.float32
        assert paddle.nn.functional.embedding(paddle.to_tensor([0]), x).dtype is paddle.bfloat16
    with pytest.warns(UserWarning, match="no_such_op"), paddle.amp.auto_cast(custom_white_list={"no_such_op", "exp"}):
        assert paddle.exp(x).dtype is paddle.float16


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"level": "O3"}, "level"),
        ({"dtype": "float32"}, "dtype"),
        ({"custom_white_list": {"exp"}, "custom_black_list": {"exp"}}, "both"),
    ],
)
def test_wrong_arguments_are_named(wrong, named):
    """Levels, types and names that do not exist are refused by name."""
    with pytest.raises(ValueError, match=named), paddle.amp.auto_cast(**wrong):
        pass
    with pytest.raises(TypeError, match="custom_white_list"), paddle.amp.auto_cast(custom_white_list="exp"):
        pass


def test_decorate_converts_models_and_keeps_master_weights():
    """At O2 parameters become half, normalisation stays float32, and the optimizer updates float32 copies."""
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.LayerNorm(4), paddle.nn.Linear(4, 4))
    optimizer = paddle.optimizer.AdamW(1e-4, parameters=model.parameters())
    given = paddle.amp.decorate(model, optimizer, "O2", "bfloat16", save_dtype="float32", excluded_layers=[model[2]])
    assert given == (model, optimizer)
    assert [layer.weight.dtype.name for layer in model] == ["bfloat16", "float32", "float32"]
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        loss = model(_batch()).square().mean()
    loss.backward()
    optimizer.step()
    assert list(optimizer.state_dict()["master_weights"]) == [model[0].weight.name, model[0].bias.name]
    assert {value.dtype.name for value in model.state_dict().values()} == {"float32"}
    with pytest.raises(TypeError, match="models"):
        paddle.amp.decorate(object())


def test_scaler_skips_overflows_and_adapts():
    """Gradients come back unscaled; an overflow skips the step and halves the scale; calm steps double it."""
    model = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(1.0, parameters=model.parameters())
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)
    before = model.weight.numpy().copy()
    scaler.scale(model(paddle.ones([1, 2])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(model.weight.numpy(), before - 1.0, rtol=1e-6)
    optimizer.clear_grad()
    scaler.scale(model(paddle.full([1, 2], float("inf"))).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(model.weight.numpy(), before - 1.0, rtol=1e-6)
    assert scaler.state_dict()["scale"] == 4.0
    for _ in range(2):
        optimizer.clear_grad()
        loss = scaler.scale(model(paddle.zeros([1, 2])).sum())
        loss.backward()
        scaler.minimize(optimizer, loss)
    assert scaler.state_dict()["scale"] == 8.0
    other = paddle.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    with pytest.raises(ValueError, match="lacks"):
        other.load_state_dict({"scale": 1.0})


def test_scaler_refuses_to_unscale_twice_and_disabled_does_nothing():
    """unscale_ twice before update is an error; a disabled scaler leaves losses and steps as they are."""
    model = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(1.0, parameters=model.parameters())
    scaler = paddle.amp.GradScaler()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already"):
        scaler.unscale_(optimizer)
    off = paddle.amp.GradScaler(enable=False)
    loss = model(paddle.ones([1, 2])).sum()
    assert off.scale(loss) is loss
    assert off.state_dict() == {}


def test_half_types_are_supported():
    """The cpu computes with both half types; devices that are not there are named."""
    assert paddle.amp.is_bfloat16_supported()
    assert paddle.amp.is_float16_supported("cpu")
    with pytest.raises(DeviceNotFound, match="cuda"):
        paddle.amp.is_bfloat16_supported("gpu:0")


def test_master_gradients_add_up_and_clip_in_float32():
    """Sixty-four small batches after a large one: bfloat16 would forget each of them."""
    model = paddle.nn.Linear(1, 1, bias_attr=False)
    rule = paddle.optimizer.SGD(1.0, parameters=model.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(2.0))
    start = model.weight.astype("bfloat16").astype("float32").item()
    paddle.amp.decorate(model, rule, "O2", "bfloat16", master_grad=True)
    for value in [1.0] + [2.0**-9] * 64:
        model(paddle.to_tensor([[value]], "bfloat16")).sum().backward()
    assert model.weight.grad.dtype == paddle.float32
    assert model.weight.grad.item() == 1.125
    rule.step()
    (master,) = rule.state_dict()["master_weights"].values()
    np.testing.assert_allclose(master.item(), start - 1.125, rtol=1e-6)


def test_settings_of_the_scaler_are_those_given():
    """A scaler says what it was made with, and whether it scales at all."""
    scaler = paddle.amp.GradScaler(init_loss_scaling=64.0, incr_every_n_steps=7, use_dynamic_loss_scaling=False)
    assert scaler.get_init_loss_scaling() == 64.0
    assert scaler.get_incr_every_n_steps() == 7
    assert scaler.is_enable()
    assert not scaler.is_use_dynamic_loss_scaling()
    assert not paddle.amp.GradScaler(enable=False).is_enable()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("backend", ["reference", "CINN"])
def test_a_captured_step_scales_and_skips_as_an_eager_one(backend):
    """The scale, its counts and the skipped step are part of the program, and come back to Python."""
    batches = [np.full((2, 3), v, np.float32) for v in (1.0, 0.5, 1e38, 2.0, 1e38, 1e38, 0.1)]
    found = []
    for captured in (False, True):
        paddle.seed(3)
        layer = paddle.nn.Linear(3, 2)
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)

        def step(x, layer=layer, optimizer=optimizer, scaler=scaler):
            loss = (layer(x) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            return loss

        step = paddle.jit.to_static(step, full_graph=True, backend=backend) if captured else step
        trace = []
        for x in batches:
            step(paddle.to_tensor(x))
            trace.append((scaler.state_dict(), layer.weight.numpy().copy()))
        found.append(trace)
    for (state, weight), (wanted, expected) in zip(*found, strict=True):
        assert state == wanted
        np.testing.assert_allclose(weight, expected, rtol=1e-5)


@pytest.mark.parametrize("enable", [True, False])
def test_the_scaler_minimizes_tensors(enable):
    w = paddle.create_parameter([2], "float32")
    optimizer = paddle.optimizer.SGD(0.1, parameters=[w])
    before = w.numpy().copy()
    with pytest.raises(TypeError, match="argument 'loss' must be a Tensor, got 3"):
        paddle.amp.GradScaler(enable=enable).minimize(optimizer, 3)
    np.testing.assert_array_equal(w.numpy(), before)


def test_operators_within_auto_cast_are_compiled_when_they_are_hot():
    """As others are: what the layer has converted finds the kernel of earlier applications."""
    rng = np.random.default_rng(0)
    x, w = (paddle.to_tensor(rng.standard_normal((256, 256)).astype("float32"), stop_gradient=False) for _ in range(2))

    def step():
        with paddle.amp.auto_cast(dtype="bfloat16"):
            loss = paddle.nn.functional.gelu(x @ w).mean()
        return loss, paddle.grad(loss, [x, w])

    first = step()
    for _ in range(60):
        last = step()
    found = get_operator("gelu").applications.applications()
    kept = [each.kernel for each in found if each.types[0].shape == (256, 256)]
    assert len(kept) == 1
    assert not isinstance(kept[0], TieredKernel)
    np.testing.assert_allclose(float(last[0]), float(first[0]), rtol=1e-2)
    for now, before in zip(last[1], first[1], strict=True):
        np.testing.assert_allclose(now.numpy(), before.numpy(), rtol=5e-2, atol=1e-4)

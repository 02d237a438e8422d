"""static.amp: scaled losses in static programs; overflowing steps change nothing but the scale."""

import numpy as np
import pytest

import argosy as paddle
from argosy.static import amp


@pytest.fixture(autouse=True)
def _programs():
    paddle.enable_static()
    yield
    paddle.disable_static()


def _built(decorate, optimizer=paddle.optimizer.SGD, auto=None):
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        x = paddle.static.data("x", [None, 4])
        layer = paddle.nn.Linear(4, 2, weight_attr=paddle.nn.initializer.Constant(0.5))
        with amp.fp16_guard(), paddle.amp.auto_cast(auto is not None, dtype=auto or "float16"):
            y = layer(x)
        loss = y.astype("float32").square().mean()
        made = decorate(optimizer(0.1))
        ops, pairs = made.minimize(loss)
        assert ops == []
        assert len(pairs) == 2
    exe = paddle.static.Executor()
    exe.run(start)
    return exe, main, layer, loss, y, made


@pytest.mark.parametrize("optimizer", [paddle.optimizer.SGD, paddle.optimizer.Adam])
def test_scaled_steps_are_those_without_scale(optimizer):
    """Scaling by a power of two and dividing again gives the same updates."""
    x = np.arange(8, dtype="float32").reshape(2, 4) / 8
    found = []
    for decorate in (lambda o: amp.decorate(o, init_loss_scaling=1024.0), lambda o: o):
        exe, main, layer, loss, _, _ = _built(decorate, optimizer)
        losses = [exe.run(main, feed={"x": x}, fetch_list=[loss])[0] for _ in range(3)]
        found.append((losses, layer.weight.numpy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)
    assert found[0][0][2] < found[0][0][0]


def test_an_overflow_is_no_step_and_halves_the_scale():
    """Infinite gradients leave parameters as they are; good steps let the scale grow again."""
    exe, main, layer, loss, _, made = _built(
        lambda o: amp.decorate(o, init_loss_scaling=8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=1)
    )
    before = layer.weight.numpy().copy()
    exe.run(main, feed={"x": np.full((1, 4), np.inf, "float32")}, fetch_list=[loss])
    assert (layer.weight.numpy() == before).all()
    assert float(made.get_loss_scaling().numpy()) == 4.0
    for _ in range(2):
        exe.run(main, feed={"x": np.ones((1, 4), "float32")}, fetch_list=[loss])
    assert (layer.weight.numpy() != before).all()
    assert float(made.get_loss_scaling().numpy()) == 8.0
    made.amp_init(paddle.CPUPlace())
    assert made.get_lr() == 0.1  # everything else is the optimizer's


def test_precision_is_that_of_auto_cast():
    """Operators recorded under auto_cast compute in half precision; bfloat16 is not scaled."""
    exe, main, _, loss, y, made = _built(lambda o: amp.bf16.decorate_bf16(o), auto="bfloat16")
    assert y.dtype.name == "bfloat16"
    assert np.isfinite(exe.run(main, feed={"x": np.ones((1, 4), "float32")}, fetch_list=[loss])[0])
    assert float(made.get_loss_scaling().numpy()) == 1.0
    assert made.get_scaled_loss() is loss


def test_a_fixed_scale_stays():
    """Without dynamic scaling the scale is what was given, and overflowing steps are left out all the same."""
    exe, main, layer, loss, _, made = _built(
        lambda o: amp.decorate(o, init_loss_scaling=128.0, use_dynamic_loss_scaling=False)
    )
    before = layer.weight.numpy().copy()
    exe.run(main, feed={"x": np.full((1, 4), np.nan, "float32")}, fetch_list=[loss])
    assert (layer.weight.numpy() == before).all()
    assert float(made.get_loss_scaling().numpy()) == 128.0


def test_lists_and_what_is_refused():
    """Custom names win over the lists; wrong levels, dtypes and overlaps are errors."""
    lists = amp.CustomOpLists(custom_white_list={"softmax"}, custom_black_list={"matmul"})
    assert "softmax" in lists.white_list - lists.black_list
    assert "matmul" in lists.black_list - lists.white_list
    assert amp.bf16.AutoMixedPrecisionListsBF16().amp_dtype == "bfloat16"
    with pytest.raises(ValueError, match="overlaps"):
        amp.AutoMixedPrecisionLists({"relu"}, {"relu"})
    with pytest.raises(ValueError, match="float64"):
        amp.AutoMixedPrecisionLists(dtype="float64")
    sgd = paddle.optimizer.SGD(0.1)
    for wrong in ({"level": "O7"}, {"dtype": "int8"}):
        with pytest.raises(ValueError, match=r"O7|int8"):
            amp.decorate(sgd, **wrong)
    with pytest.raises(RuntimeError, match="minimize"):
        amp.decorate(sgd).get_loss_scaling()
    with pytest.raises(RuntimeError, match="backward"):
        amp.decorate(sgd).apply_gradients([])
    with pytest.raises(NotImplementedError, match="auto_cast"):
        amp.cast_model_to_fp16(None)
    with pytest.raises(NotImplementedError, match="auto_cast"):
        amp.cast_parameters_to_fp16(None, None)

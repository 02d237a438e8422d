"""Static programs: built once, run by an Executor, with the numbers of eager execution."""

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops.context import Context, bind_context

static, F = paddle.static, paddle.nn.functional
RNG = np.random.default_rng(5)


def _floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def _given(*shape):
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(_floats(*shape) * 0.5))


@pytest.fixture
def program():
    """A main and a startup program that record, and an executor."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        yield main, startup, static.Executor(paddle.CPUPlace())


def _regression(dropout=0.0):
    x, y = static.data("x", [None, 3]), static.data("y", [None, 1])
    hidden = F.dropout(static.nn.fc(x, 4, weight_attr=_given(3, 4), activation="tanh"), dropout)
    prediction = static.nn.fc(hidden, 1, weight_attr=_given(4, 1))
    return x, y, prediction, F.square_error_cost(prediction, y).mean()


@pytest.mark.parametrize("clip", [None, paddle.nn.ClipGradByGlobalNorm(0.5)])
def test_training_is_that_of_eager_execution(program, clip):
    """The same losses and parameters as eager steps, for batches of any size; fetched by variable or name."""
    main, startup, exe = program
    _, _, prediction, loss = _regression()
    schedule = paddle.optimizer.lr.StepDecay(0.1, 2, 0.5)
    paddle.optimizer.Adam(schedule, grad_clip=clip, weight_decay=0.01).minimize(loss)
    exe.run(startup)
    weights = [p.numpy().copy() for p in main.all_parameters()]
    batches = [(_floats(n, 3), _floats(n, 1)) for n in (4, 4, 7, 1)]
    found = []
    for x, y in batches:
        found.append(exe.run(main, feed={"x": x, "y": y}, fetch_list=[loss, prediction.name]))
        schedule.step()
    expected, final = _eagerly(weights, batches, clip)
    for (value, rows), wanted, (x, _) in zip(found, expected, batches, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-5)
        assert rows.shape == (len(x), 1)
    for p, wanted in zip(main.all_parameters(), final, strict=True):
        np.testing.assert_allclose(p.numpy(), wanted, rtol=2e-5, atol=1e-6)


def _eagerly(weights, batches, clip):
    with bind_context(Context()):
        parameters = [paddle.create_parameter(w.shape, "float32") for w in weights]
        for p, w in zip(parameters, weights, strict=True):
            p.set_value(w)
        a, b, c, d = parameters
        schedule = paddle.optimizer.lr.StepDecay(0.1, 2, 0.5)
        settings = {"grad_clip": clip, "weight_decay": 0.01}
        optimizer = paddle.optimizer.Adam(schedule, parameters=parameters, **settings)
        losses = []
        for x, y in batches:
            x, y = paddle.to_tensor(x), paddle.to_tensor(y)
            loss = F.square_error_cost(paddle.tanh(x @ a + b) @ c + d, y).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            schedule.step()
            losses.append(float(loss))
        return losses, [p.numpy() for p in parameters]


def test_a_clone_for_test_evaluates(program):
    """Dropout drops nothing, normalisation uses running statistics and leaves them, nothing is trained."""
    main, startup, exe = program
    x = static.data("x", [-1, 2, 3, 3])
    y = F.dropout(static.nn.batch_norm(x, momentum=0.5), 0.5)
    test = main.clone(for_test=True)
    loss = static.nn.fc(y, 1).mean()
    paddle.optimizer.SGD(0.1).minimize(loss)
    exe.run(startup)
    batch = _floats(4, 2, 3, 3)
    for _ in range(2):
        np.testing.assert_allclose(
            exe.run(test, feed={"x": batch}, fetch_list=[y])[0], batch / np.sqrt(1 + 1e-5), rtol=1e-5
        )
    first, second = (exe.run(main, feed={"x": batch}, fetch_list=[y])[0] for _ in range(2))
    assert not np.array_equal(first == 0, second == 0)
    mean = 0.75 * batch.mean((0, 2, 3))
    variance = 0.25 + 0.75 * batch.var((0, 2, 3))
    found = {p.name: p.numpy() for p in test.all_parameters()}
    assert any(np.allclose(v, mean, atol=1e-6) for v in found.values())
    assert any(np.allclose(v, variance, rtol=1e-5) for v in found.values())


def test_gradients_are_variables(program):
    """append_backward and gradients give variables, of any order, that can be fetched and computed with."""
    main, _, exe = program
    x = static.data("x", [3])
    x.stop_gradient = False
    w = static.create_parameter([3], "float32", attr=_given(3))
    y = (x * x * x * w).sum()
    (first,) = static.gradients([y], [x])
    (second,) = static.gradients(first.sum(), x)
    ((parameter, gradient),) = static.append_backward(y)
    value = _floats(3)
    got = exe.run(main, feed={"x": value}, fetch_list=[first, second, gradient, f"{w.name}@GRAD", w])
    np.testing.assert_allclose(got[0], 3 * value**2 * w.numpy(), rtol=1e-5)
    np.testing.assert_allclose(got[1], 6 * value * w.numpy(), rtol=1e-5)
    np.testing.assert_allclose(got[2], value**3, rtol=1e-5)
    np.testing.assert_array_equal(got[3], got[2])
    np.testing.assert_array_equal(got[4], w.numpy())
    assert parameter is w


def test_control_flow_is_recorded(program):
    """while_loop and cond run as often as the values fed say, and gradients go back through them."""
    main, _, exe = program
    x = static.data("x", [2])
    x.stop_gradient = False
    n = static.data("n", [1], "int64")
    _, total = static.nn.while_loop(
        lambda i, s: i < n, lambda i, s: [i + 1, s * x + 1], [paddle.zeros([1], "int64"), x]
    )
    y = static.nn.cond(total.sum() > 4, lambda: total * 2, lambda: total - 1)
    (slope,) = static.gradients(y, x)
    value = np.array([1.5, 0.5], np.float32)
    for count in (0, 1, 4):
        s, d = value, np.ones(2)
        for _ in range(count):
            s, d = s * value + 1, d * value + s
        wanted = (s * 2, d * 2) if s.sum() > 4 else (s - 1, d)
        got = exe.run(main, feed={"x": value, "n": np.array([count])}, fetch_list=[y, slope])
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_layers_are_those_of_nn(program):
    """The functional layers make parameters of known shapes and compute what nn's layers do."""
    main, startup, exe = program
    image, words = static.data("image", [None, 2, 6, 6]), static.data("words", [None, 5], "int64")
    made = [
        static.nn.conv2d(image, 4, 3, act="relu"),
        static.nn.conv2d_transpose(image, 3, output_size=[8, 8], padding=1, stride=1),
        static.nn.group_norm(image, 2),
        static.nn.instance_norm(image),
        static.nn.layer_norm(image),
        static.nn.prelu(image, "channel"),
        static.nn.prelu(image, "element"),
        static.nn.fc([static.nn.embedding(words, [9, 4]).sum(1), static.nn.fc(image, 4)], 3),
        static.nn.row_conv(static.nn.embedding(words, [9, 4]), 2),
        static.nn.bilinear_tensor_product(static.nn.fc(image, 3), static.nn.fc(image, 2), 5),
    ]
    exe.run(startup)
    batch = _floats(3, 2, 6, 6)
    got = exe.run(main, feed={"image": batch, "words": RNG.integers(0, 9, (3, 5))}, fetch_list=made)
    shapes = [(3, 4, 4, 4), (3, 3, 8, 8), *[(3, 2, 6, 6)] * 5, (3, 3), (3, 5, 4), (3, 5)]
    assert [a.shape for a in got] == shapes
    np.testing.assert_allclose(got[4].reshape(3, -1).std(1), np.ones(3), rtol=1e-4)
    np.testing.assert_allclose(got[5], np.where(batch > 0, batch, 0.25 * batch), rtol=1e-6)
    assert sorted(tuple(p.shape) for p in main.all_parameters())[:2] == [(1, 2, 6, 6), (1, 5)]


def test_files(program, tmp_path):
    """Parameters and optimizer states come back; an inference program runs alone."""
    main, startup, exe = program
    x, _, prediction, loss = _regression(dropout=0.5)
    paddle.optimizer.Adam(0.1).minimize(loss)
    exe.run(startup)
    feed = {"x": _floats(4, 3), "y": _floats(4, 1)}
    exe.run(main, feed=feed)
    static.save(main, str(tmp_path / "state"))
    kept = {name: value.numpy().copy() for name, value in main.state_dict().items()}
    assert len(static.load_program_state(str(tmp_path / "state"))) == len(kept) > 4 + 2 * 4
    static.save_inference_model(str(tmp_path / "net"), [x], [prediction], exe)
    exe.run(main, feed=feed)
    static.load(main, str(tmp_path / "state"), exe)
    for name, value in main.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), kept[name])
    program, names, targets = static.load_inference_model(str(tmp_path / "net"), exe)
    expected = exe.run(main.clone(for_test=True), feed=feed, fetch_list=[prediction])[0]
    got = exe.run(program, feed={names[0]: feed["x"]}, fetch_list=targets)[0]
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert names == ["x"]
    parts = static.serialize_program([x], [prediction]), static.serialize_persistables([x], [prediction], exe)
    static.save_to_file(str(tmp_path / "part"), parts[1])
    again = static.deserialize_program(parts[0])
    static.deserialize_persistables(again, static.load_from_file(str(tmp_path / "part")), exe)
    assert {p.name for p in again.all_parameters()} == {p.name for p in main.all_parameters()}
    with pytest.raises(ValueError, match="need \\['y'\\]"):
        static.save_inference_model(str(tmp_path / "bad"), [x], [loss], exe)


def test_inference_programs_are_layers(tmp_path):
    """``jit.load`` takes what ``save_inference_model`` wrote."""
    main, startup, exe = static.Program(), static.Program(), static.Executor()
    with static.program_guard(main, startup):
        x, _, prediction, _ = _regression()
        exe.run(startup)
        rows = _floats(4, 3)
        (expected,) = exe.run(main, feed={"x": rows}, fetch_list=[prediction])
        static.save_inference_model(str(tmp_path / "net"), [x], [prediction], exe)
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "net"))(rows).numpy(), expected, rtol=1e-5)


def test_metrics_and_averages(program):
    """accuracy, auc over runs, and parameters' moving averages."""
    main, startup, exe = program
    scores, label = static.data("scores", [None, 2]), static.data("label", [None, 1], "int64")
    right, (area, latest, _) = static.accuracy(scores, label), static.auc(scores, label)
    w = static.create_parameter([2], "float32", attr=_given(2))
    paddle.optimizer.SGD(0.5).minimize((w * w).sum())
    average = static.ExponentialMovingAverage(0.5)
    average.update()
    exe.run(startup)
    metric, values = paddle.metric.Auc(), []
    for n in (40, 30):
        p, wanted = RNG.random(n).astype(np.float32), RNG.integers(0, 2, (n, 1))
        rows = np.stack([1 - p, p], 1)
        before = metric.accumulate()
        metric.update(rows, wanted)
        got = exe.run(main, feed={"scores": rows, "label": wanted}, fetch_list=[right, area, latest, w])
        values.append(got[3])
        np.testing.assert_allclose(got[0], ((p > 0.5) == wanted[:, 0]).mean(), rtol=1e-6)
        np.testing.assert_allclose(got[1], metric.accumulate(), rtol=1e-6)
        assert (got[1] == got[2]) == (before == 0)
    with average.apply(exe):
        np.testing.assert_allclose(w.numpy(), (values[0] * 0.25 + values[1] * 0.5) / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(w.numpy(), values[1])


def test_python_functions(program, capsys):
    """py_func with a gradient, and Print, run when the program does."""
    main, _, exe = program
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    out = main.current_block().create_var(name="out", dtype="float32", shape=x.shape)
    y = static.py_func(np.tanh, x, out, lambda v, y, g: g * (1 - y**2))
    z = static.Print(y * 1, message="seen", first_n=1)
    (slope,) = static.gradients(z, x)
    for n in (3, 1):
        value = _floats(n, 2)
        got = exe.run(main, feed={"x": value}, fetch_list=[z, slope])
        np.testing.assert_allclose(got[0], np.tanh(value), rtol=1e-6)
        np.testing.assert_allclose(got[1], 1 - np.tanh(value) ** 2, rtol=1e-4, atol=1e-6)
    printed = capsys.readouterr().out
    assert printed.count("seen") == 1
    assert "[3, 2]" in printed


def test_the_mode_is_left_again():
    """enable_static records into the default programs; disable_static makes operators run at once again."""
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    try:
        assert not paddle.in_dynamic_mode()
        y = paddle.ones([2]) * 3
        assert static.Executor().run(fetch_list=[y])[0].tolist() == [3.0, 3.0]
        with pytest.raises(RuntimeError, match=r"Executor\.run fetches it"):
            y.numpy()
    finally:
        paddle.disable_static()
    assert (paddle.ones([2]) * 3).tolist() == [3.0, 3.0]


def test_what_does_not_fit_is_named(program):
    """Missing or misshapen data, unknown names, foreign variables."""
    main, _, exe = program
    x = static.data("x", [None, 2])
    y = x * 2
    with pytest.raises(ValueError, match="needs \\['x'\\]"):
        exe.run(main, fetch_list=[y])
    with pytest.raises(ValueError, match=r"'x' has shape \[-1, 2\], it is fed \[2, 3\]"):
        exe.run(main, feed={"x": _floats(2, 3)}, fetch_list=[y])
    with pytest.raises(TypeError, match="it is fed complex"):
        exe.run(main, feed={"x": np.zeros((1, 2), complex)}, fetch_list=[y])
    with pytest.raises(ValueError, match="no variable 'nothing'"):
        exe.run(main, feed={}, fetch_list=["nothing"])
    with pytest.raises(ValueError, match="another program"):
        static.Program().value_of(y)
    with pytest.raises(ValueError, match="already"):
        static.data("x", [2])
    with pytest.raises(ValueError, match="known sizes"):
        static.nn.fc(static.data("open", [2, None]), 3)
    with pytest.raises(AttributeError, match="parameters must be given"):
        _outside(paddle.optimizer.SGD)
    with pytest.raises(RuntimeError, match="enable_static"):
        _outside(lambda: static.data("z", [1]))


def _outside(function):
    with bind_context(Context()):
        return function()


def test_an_open_size_meets_a_number(program):
    """A variable of open size beside one of known size is of that size, whatever was made of it before."""
    main, _, exe = program
    x, y = static.data("x", [3, 2]), static.data("y", [None, 2])
    total = (x + y * 2).sum(0)
    got = exe.run(main, feed=[{"x": np.ones((3, 2)), "y": np.ones((3, 2))}], fetch_list=[total])[0]
    assert got.tolist() == [9.0, 9.0]
    assert list(y.shape) == [3, 2]


def test_a_data_loader_feeds_by_name(program):
    """return_list=False gives what Executor.run takes."""
    main, _, exe = program
    x, y = static.data("x", [None, 2]), static.data("y", [None])
    rows = paddle.io.TensorDataset([np.arange(8, dtype=np.float32).reshape(4, 2), np.ones(4, np.float32)])
    loader = paddle.io.DataLoader(rows, feed_list=[x, y], return_list=False, batch_size=3)
    total = (x.sum(1) * y).sum()
    assert [float(exe.run(main, feed=batch, fetch_list=[total])[0]) for batch in loader()] == [15.0, 13.0]


def test_a_function_with_its_own_gradient(program):
    """static_pylayer takes the user's gradient; without one the results are constants."""
    main, _, exe = program
    x = static.data("x", [2])
    x.stop_gradient = False
    y = static.nn.static_pylayer(lambda v: v * v, [x], lambda g: g * 10)
    constant = static.nn.static_pylayer(lambda v: v * 3, [x])
    (slope,) = static.gradients(y * constant, x)
    got = exe.run(main, feed={"x": np.array([1, 2], np.float32)}, fetch_list=[y, slope])
    assert [a.tolist() for a in got] == [[1.0, 4.0], [30.0, 60.0]]
    with pytest.raises(TypeError, match="backward_fn is a function"):
        static.nn.static_pylayer(lambda v: v, [x], 3)

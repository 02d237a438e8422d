"""What runs around a graph break: parts are compiled, and results, effects and gradients are those of plain Python."""

import numpy as np
import pytest

import argosy as paddle

nn = paddle.nn
F = nn.functional


@pytest.fixture(autouse=True)
def _fresh_report():
    paddle.jit.clear_report()
    yield
    paddle.jit.clear_report()


def _x(seed, *shape):
    return paddle.to_tensor(np.random.default_rng(seed).standard_normal(shape or (3, 4)).astype(np.float32))


def _static(function):
    return paddle.jit.to_static(function, backend="reference")


def _arrays(result):
    if isinstance(result, (list, tuple)):
        return [a for item in result for a in _arrays(item)]
    return [result.numpy() if isinstance(result, paddle.Tensor) else np.asarray(result)]


SCALE = 2.0


def at_the_start(x):
    scale = float(x.sum())
    y = F.tanh(x * scale)
    return F.softmax(y @ y.t())


def at_the_end(x):
    y = F.tanh(x)
    z = F.softmax(y @ y.t())
    return z.numpy()


def twice(x, power=2):
    y = F.relu(x) ** power
    first = y.numpy().sum()
    z = F.sigmoid(y) + x
    second = float(z.mean())
    return F.exp(-z), first + second


def in_a_branch(x):
    y = F.tanh(x)
    if float(y.sum()) > 0:
        z = F.exp(y) * 2
    else:
        z = F.sigmoid(y) - 1
    return F.softmax(z + y)


def with_a_way_out(x):
    y = F.tanh(x)
    if float(y.sum()) > 0:
        return F.exp(y) * SCALE
    z = F.sigmoid(y)
    return F.softmax(z) - y, z


def in_a_loop(x):
    y = F.tanh(x)
    total = 0.0
    for i in range(3):
        y = F.tanh(y) + i
        total += float(y.sum())
        if total > 100:
            break
    while float(y.sum()) > 1:
        y = F.sigmoid(y) - 0.5
    return F.exp(y), total


def with_gradients_off(x):
    y = F.tanh(x)
    with paddle.no_grad():
        z = F.exp(y)
        print(end=str(z.numpy())[:0])  # noqa: T201
        w = F.sigmoid(z) * y
    return F.softmax(w + y) * 2


def with_tuples(x):
    y, z = F.tanh(x), F.exp(x)
    pair = (y, (z, 3))
    n = int(y.argmax())
    y, (z, k) = pair
    return F.softmax(y * z) * k + n


def callee(x):
    y = F.tanh(x)
    return F.exp(y) * float(y.sum())


def in_a_callee(x):
    y = F.sigmoid(x) @ x.t()
    z = callee(y)
    return F.softmax(z + y)


WHOLE = [
    at_the_start, at_the_end, twice, in_a_branch, with_a_way_out, in_a_loop, with_gradients_off, with_tuples,
    in_a_callee,
]  # fmt: skip


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_parts_around_breaks_are_compiled_and_give_what_python_gives(function):
    captured = _static(function)
    for seed in (*range(8), 3):
        x = _x(seed)
        for a, b in zip(_arrays(captured(x)), _arrays(function(x)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            assert a.dtype == b.dtype
    assert captured.parts_compiled


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_gradients_go_through_parts(function):
    captured = _static(function)
    for seed in range(4):
        found = []
        for run in (captured, function):
            x = _x(seed)
            x.stop_gradient = False
            made = run(x)
            wanted = [y for y in (made if isinstance(made, tuple) else (made,)) if isinstance(y, paddle.Tensor)]
            if wanted:
                sum((y * y).sum() for y in wanted).backward()
            found.append(_arrays(x.grad) if wanted else [])
        # Gradients of a softmax beside one cancel: terms of some tens leave some ten thousandths.
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


def test_arguments_bind_as_before():
    def f(x, *rest, power=2, **more):
        y = F.tanh(x) ** power
        value = float(y.sum())
        for other in rest:
            y = F.exp(y) + other
        return F.sigmoid(y) * value, sorted(more)

    captured = _static(f)
    for _ in range(3):
        for args, kwargs in (((), {}), ((1.0, 2.0), {"power": 3}), ((), {"a": 1, "b": 2})):
            ours, plain = captured(_x(1), *args, **kwargs), f(_x(1), *args, **kwargs)
            np.testing.assert_allclose(ours[0].numpy(), plain[0].numpy(), rtol=1e-5)
            assert ours[1] == plain[1]


def test_what_parts_read_elsewhere_is_guarded(monkeypatch):
    scale = 1.0

    def f(x):
        y = F.tanh(x) * scale
        value = float(y.sum())
        return F.exp(y * SCALE) + value

    captured = _static(f)
    for i in range(6):
        scale = [1.0, 1.5][i // 2 % 2]
        monkeypatch.setitem(globals(), "SCALE", [2.0, 3.0][i % 2])
        np.testing.assert_allclose(captured(_x(1)).numpy(), f(_x(1)).numpy(), rtol=1e-5)


def test_methods_have_parts_of_their_own_for_each_instance():
    class Scaled(nn.Layer):
        def __init__(self, factor):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.factor = factor
            self.calls = 0

        @paddle.jit.to_static(backend="reference")
        def forward(self, x):
            y = F.tanh(self.linear(x)) * self.factor
            self.calls += 1
            value = float(y.sum())
            return F.softmax(self.linear(y)) * value

    layers = [Scaled(2.0), Scaled(3.0)]
    for i in range(4):
        for layer in layers:
            y = F.tanh(layer.linear(_x(i))) * layer.factor
            expected = F.softmax(layer.linear(y)) * float(y.sum())
            np.testing.assert_allclose(layer(_x(i)).numpy(), expected.numpy(), rtol=1e-5)
            layer.linear.weight.set_value(layer.linear.weight * 1.1)
    assert [layer.calls for layer in layers] == [4, 4]


@pytest.mark.parametrize("where", ["before", "after", "both"])
def test_training_with_compiled_parts_is_that_of_python(where):
    """Losses, moments and statistics, with dropout; a step that looks at its loss."""

    def make():
        paddle.seed(4)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1D(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 1))
        optimizer = paddle.optimizer.Adam(0.05, parameters=model.parameters())

        def step(x):
            loss = F.mse_loss(model(x), x[:, :1])
            if where in ("before", "both"):
                assert loss.item() >= 0
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            value = loss.item() if where in ("after", "both") else 0.0
            scaled = F.tanh(loss) * 2
            return scaled, value

        return step, model

    (plain, expected), (step, model) = make(), make()
    captured = _static(step)
    paddle.seed(9)
    losses = [plain(_x(i))[0].item() for i in range(8)]
    paddle.seed(9)
    np.testing.assert_allclose([captured(_x(i))[0].item() for i in range(8)], losses, rtol=1e-4)
    for a, b in zip(model.state_dict().values(), expected.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-5)


def test_effects_on_python_happen_once_in_each_call():
    """A statement whose call gives nothing stays Python; a function that changes objects makes no program."""
    seen = []

    def noisy(y):
        seen.append("callee")
        return F.tanh(y)

    def f(x):
        seen.append("first")
        y = noisy(x) + 1
        value = float(y.sum())
        z = noisy(F.exp(y))
        seen.append("last")
        return z * value

    captured = _static(f)
    for i in range(7):
        captured(_x(i))
        assert seen == ["first", "callee", "callee", "last"]
        seen.clear()


def test_containers_and_shared_memory_stay_what_they_are():
    kept = []

    def lists(x):
        parts = [F.tanh(x)]
        same = parts
        value = float(x.sum())
        more = F.exp(parts[0]) * value
        same.append(more)
        return len(parts), more

    def itself(x):
        y = x
        z = F.tanh(x)
        kept.append(float(z.sum()))
        return (y is x), F.exp(y) + F.tanh(z)

    def in_place(x):
        y = F.tanh(x)
        view = y.reshape([-1])
        kept.append(float(y.sum()))
        view.add_(paddle.ones_like(view))
        return F.exp(y)

    def arrays(x):
        y = F.tanh(x)
        a = y.numpy()
        b = np.square(a)
        return type(b).__name__, F.exp(y) * 2

    for function in (lists, itself, in_place, arrays):
        captured = _static(function)
        for i in range(4):
            x = _x(i)
            for a, b in zip(_arrays(captured(x)), _arrays(function(x)), strict=True):
                np.testing.assert_array_equal(a, b) if a.dtype.kind == "U" else np.testing.assert_allclose(a, b, 1e-5)


def test_numbers_that_change_become_inputs_of_parts_and_stay_numbers():
    def f(x, i):
        value = float(x.sum())
        double = value * 2
        y = F.tanh(x) * double + i
        other = F.exp(y) * 0.5
        return other, double, isinstance(double, float)

    captured = _static(f)
    for i in range(40):
        ours, plain = captured(_x(i), i), f(_x(i), i)
        np.testing.assert_allclose(ours[0].numpy(), plain[0].numpy(), rtol=1e-4)
        assert ours[1:] == plain[1:]
    assert len(captured.parts_compiled) <= 40


def test_the_report_counts_the_programs_around_a_break():
    def f(x):
        y = F.tanh(x)
        value = y.numpy().sum()
        return F.exp(y) * float(value)

    captured = _static(f)
    captured(_x(0))
    (found,) = paddle.jit.report()
    assert (found.line, found.parts) == (f.__code__.co_firstlineno + 2, 0)
    for i in range(3):
        captured(_x(i))
    assert found.parts == len(captured.parts_compiled) >= 1
    assert "of the parts around it" in repr(found)
    assert paddle.jit.report() == [found]


def test_functions_without_source_and_with_inner_functions_go_on_as_python():
    def inner(x):
        y = F.tanh(x)
        value = float(y.sum())
        scaled = lambda t: F.exp(t) * value + y  # noqa: E731
        return scaled(y)

    namespace = {"F": F}
    exec("def unseen(x):\n    y = F.tanh(x)\n    return F.exp(y) * float(y.sum())", namespace)
    for function in (inner, namespace["unseen"], lambda x: F.exp(x) * float(x.sum())):
        captured = _static(function)
        for i in range(3):
            np.testing.assert_allclose(captured(_x(i)).numpy(), function(_x(i)).numpy(), rtol=1e-5)
        assert captured.parts_compiled == []


class Counting(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        y = F.exp(F.tanh(x) * 2)
        self.calls += 1
        return F.sigmoid(y) * 0 + self.calls


@pytest.mark.parametrize("nested", [False, True])
def test_counters_of_calls_count(nested):
    inner = Counting()
    layer = paddle.jit.to_static(paddle.nn.Sequential(inner) if nested else inner)
    with pytest.warns(UserWarning, match="changes a number that it reads with each call"), paddle.no_grad():
        found = [layer(_x(0)).max().item() for _ in range(6)]
    assert found == [1, 2, 3, 4, 5, 6] == [*range(1, inner.calls + 1)]
    assert nested or inner.forward.parts_compiled


def test_what_the_first_call_fills_in_is_compiled():
    class Lazy(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.ready = False

        def forward(self, x):
            if not self.ready:
                self.ready = True
            return F.tanh(x)

    layer = paddle.jit.to_static(Lazy())
    for _ in range(4):
        layer(_x(0))
    assert len(layer.forward.compiled) == 1

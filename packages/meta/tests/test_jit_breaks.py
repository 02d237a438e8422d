"""Graph breaks: Python that needs a value gets it, everything runs once, and the report says where."""

import gc
import sys
import threading
import time

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops.capture import live_tensors as module_of_live_tensors
from argosy_phi_ops.capture.live_tensors import live_tensors

nn = paddle.nn


@pytest.fixture(autouse=True)
def _fresh_report():
    paddle.jit.clear_report()
    yield
    paddle.jit.clear_report()


def _t(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def _static(function, **options):
    return paddle.jit.to_static(function, backend="reference", **options)


def test_everything_runs_once_around_a_break():
    """Before and after the line that needs a value each effect happens once per call, and results are right."""
    seen = []

    def f(x):
        seen.append("before")
        y = x * 2
        seen.append(y.numpy().tolist())
        return y + 1 if float(y.sum()) > 0 else y - 1

    captured = _static(f)
    for x in (_t(1, 2), _t(-1, -2), _t(3, 4)):
        np.testing.assert_allclose(captured(x).numpy(), f(x).numpy())
    assert seen == [s for v in ([2.0, 4.0], [-2.0, -4.0], [6.0, 8.0]) for s in ("before", v) * 2]


def test_the_report_names_file_line_and_reason():
    """One entry for the line, with what Python needed; full_graph=True raises instead and says the same."""

    def f(x):
        y = x * 2
        return y * float(y.sum())

    _static(f)(_t(1, 2))
    (found,) = paddle.jit.report()
    assert (found.file, found.line) == (__file__, f.__code__.co_firstlineno + 2)
    assert "float()" in found.reason
    assert "in f: float()" in repr(found)

    def g(x):
        print(x)  # noqa: T201
        return x

    with pytest.raises(NotImplementedError, match=r"full_graph=True\) cannot capture g"):
        _static(g, full_graph=True)(_t(1, 2))


@pytest.mark.parametrize("where", ["before backward", "after backward", "between"])
def test_training_steps_break_anywhere(where):
    """A step that looks at its loss trains as the plain one, wherever it looks."""

    def make():
        paddle.seed(4)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters())

        def step(x):
            loss = (model(x) ** 2).mean()
            if where == "before backward":
                value = loss.item()
            loss.backward()
            if where == "between":
                value = loss.item()
            optimizer.step()
            optimizer.clear_grad()
            if where == "after backward":
                value = loss.item()
            return value

        return step

    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32))
    plain = make()
    expected = [plain(x) for _ in range(4)]
    captured = _static(make())
    np.testing.assert_allclose([captured(x) for _ in range(4)], expected, rtol=1e-5)


def test_backward_outside_goes_through_a_break():
    """The result of a broken forward carries gradients to parameters and inputs."""

    class Scaled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            y = self.linear(x)
            return y * float(np.abs(y.numpy()).sum())

    layer = Scaled()
    x = _t(1, 2)
    x.stop_gradient = False
    layer(x).sum().backward()
    expected = layer.linear.weight.grad.numpy(), x.grad.numpy()
    layer.clear_gradients()
    x.clear_gradient()
    _static(layer)(x).sum().backward()
    np.testing.assert_allclose(layer.linear.weight.grad.numpy(), expected[0])
    np.testing.assert_allclose(x.grad.numpy(), expected[1])


def test_writes_before_a_break_reach_their_owners():
    """Arguments and states changed in place before the break hold the new values, once."""
    total = _t(0, 0)

    def f(x):
        total.add_(x)
        x.scale_(3.0)
        value = x.numpy().copy()
        x.add_(_t(1, 1))
        return value

    captured = _static(f)
    for _ in range(2):
        x = _t(1, 2)
        np.testing.assert_array_equal(captured(x), [3, 6])
        np.testing.assert_array_equal(x.numpy(), [4, 7])
    np.testing.assert_array_equal(total.numpy(), [2, 4])


def test_random_numbers_go_on_after_a_break():
    """Draws before and after the break are those of eager execution."""

    def f(x):
        a = nn.functional.dropout(x, 0.5)
        return a.numpy(), nn.functional.dropout(x, 0.5).numpy()

    x = paddle.ones([8])
    captured = _static(f)
    paddle.seed(5)
    expected = [f(x) for _ in range(2)]
    paddle.seed(5)
    np.testing.assert_array_equal([captured(x) for _ in range(2)], expected)


def test_a_branch_with_effects_is_left_to_python():
    """Unless the whole graph is asked for, an if whose branches do more than set variables runs as Python."""
    seen = []

    def f(x):
        if x.sum() > 0:
            seen.append("positive")
            return x
        seen.append("negative")
        return -x

    captured = _static(f)
    assert captured(_t(1, 2)).tolist() == captured(_t(-1, -2)).tolist() == [1.0, 2.0]
    assert seen == ["positive", "negative"]
    assert len(paddle.jit.report()) == 1


def test_a_break_within_a_branch_leaves_the_branch_to_python():
    """Code that a captured branch calls and that needs a value runs for the branch taken only."""

    def described(x):
        return x * float(x.numpy().sum())

    def f(x):
        y = x * 1
        if y.sum() > 0:
            y = described(y)
        return y

    captured = _static(f)
    for x in (_t(1, 2), _t(-1, -2)):
        np.testing.assert_allclose(captured(x).numpy(), f(x).numpy())


def test_open_sizes_break_too():
    """With an InputSpec of open sizes the captured part is executed for the sizes of the call."""
    f = _static(lambda x: (x * 2).numpy().sum() + x, input_spec=[paddle.static.InputSpec([None, 2], "float32")])
    for n in (1, 3):
        x = paddle.ones([n, 2])
        np.testing.assert_allclose(f(x).numpy(), x.numpy() * (4 * n + 1))


def test_kept_tensors_live_on():
    """A tensor that the function stores somewhere is concrete after the call."""
    kept = []

    def f(x):
        y = x * 2
        kept.append(y)
        return y.sum().item()

    assert _static(f)(_t(1, 2)) == 6.0
    assert kept[0].numpy().tolist() == [2.0, 4.0]


def test_the_heap_is_looked_through_only_where_a_tensor_may_be_kept(monkeypatch):
    """A step that keeps nothing is captured in a time that does not depend on how many objects a process has."""
    looked = []
    monkeypatch.setattr(module_of_live_tensors, "live_tensors", lambda tracer: looked.append(1) or live_tensors(tracer))
    model, x = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), _t([1, 2], [3, 4])
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())

    def step(x):
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss, x.detach()

    _static(step)(x)
    assert looked == []
    kept = []
    _static(lambda x: kept.append(x * 2))(x)
    assert looked
    np.testing.assert_array_equal(kept[0].numpy(), x.numpy() * 2)


def test_other_threads_that_capture_keep_nothing_alive(monkeypatch):
    """To find the living tensors of its own capture a thread looks at those of all, which counts for nobody's."""
    look, holding, referrers = threading.Event(), threading.Event(), gc.get_referrers

    def slowly(*objects):
        found = referrers(*objects)
        if threading.current_thread() is thread:
            holding.set()
            time.sleep(0.2)
        return found

    def looks():
        look.wait()
        live_tensors(None)

    def doubled(x):
        y = x * 2
        look.set()
        holding.wait()
        return y + 1

    monkeypatch.setattr(gc, "get_referrers", slowly)
    thread = threading.Thread(target=looks)
    thread.start()
    try:
        _static(doubled)(_t(1, 2))
    finally:
        look.set()
        thread.join()
    assert paddle.jit.report() == []


def test_breaks_and_rewritten_code_are_shown_on_request(capsys):
    """set_verbosity and set_code_level print to stderr what happens, and nothing once they are back at 0."""

    def f(x):
        if x.sum() > 0:
            x = x * 2
        return float(x.sum())

    paddle.jit.set_verbosity(1)
    paddle.jit.set_code_level()
    try:
        _static(f)(_t(1, 2))
    finally:
        paddle.jit.set_verbosity(0)
        paddle.jit.set_code_level(0)
    shown = capsys.readouterr().err
    assert "graph break at" in shown
    assert "def f(x)" in shown
    assert "if_(" in shown
    _static(f)(_t(1, 2))
    assert capsys.readouterr().err == ""


def test_a_break_leaves_other_threads_alone():
    """Looking for tensors that are alive does not hold what another thread is making."""
    failures, stop = [], threading.Event()

    def make_tuples():
        while not stop.is_set():
            try:
                tuple(i for i in range(200))
            except SystemError as error:
                failures.append(error)
                return

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other = threading.Thread(target=make_tuples)
    other.start()
    try:
        for n in range(30):
            run = paddle.jit.to_static(lambda x, n=n: x * n if x.sum().item() > 0 else x)
            assert run(paddle.ones([2])).tolist() == [n, n]
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(before)
    assert not failures


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("look", ["after", "between", "before"])
def test_an_update_that_breaks_reads_and_clears_gradients_from_outside(zero, look):
    """Slots that the captured part set stay so after the break, whatever they held before it."""

    def trained(captured):
        paddle.seed(1)
        net = nn.Linear(4, 1)
        optimizer = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def update(loss):
            if look == "before":
                loss.backward()
            optimizer.step()
            value = float(net.weight.sum()) if look == "between" else 0.0
            optimizer.clear_grad(zero)
            return value + float(net.weight.sum())

        run = _static(update) if captured else update
        found = []
        for i in range(6):
            x = paddle.to_tensor(np.random.default_rng(i).standard_normal((2, 4)).astype(np.float32))
            loss = (net(x) ** 2).sum()
            if look != "before":
                loss.backward()
            found += [run(loss), loss.item()]
            assert net.weight.grad is None or not net.weight.grad.numpy().any()
        return found

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5)

"""Control flow over tensors: captured whole, on both settings of full_graph, with the values of plain Python."""

import linecache
import signal

import numpy as np
import pytest

import argosy as paddle

pytestmark = pytest.mark.usefixtures("verified_passes")

nn = paddle.nn


def _t(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def _numbers(result):
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(x) for x in parts]


def _agrees(function, *calls, full_graph=True, backend="reference", compiles=1):
    """One program serves all calls, and each gives what Python gives."""
    captured = paddle.jit.to_static(function, full_graph=full_graph, backend=backend)
    with paddle.jit.count_compiles() as count:
        for arguments in calls:
            for made, expected in zip(_numbers(captured(*arguments)), _numbers(function(*arguments)), strict=True):
                np.testing.assert_allclose(made, expected, rtol=1e-5)
    assert count.value == compiles
    return captured


def sign_dependent(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


def several_returns(x):
    if x.sum() > 0:
        return x * 2
    if x.sum() < -10:
        return x * 3
    return x


def loop_with_break(x):
    i = paddle.to_tensor(0)
    total = x
    while i < 5:
        total = total * 2
        i = i + 1
        if total.sum() > 20:
            break
    return total, i


def returns_from_a_loop(x):
    for i in range(6):
        x = x + i
        if x.sum() > 10:
            return x * 100
    return x


def nested(x):
    total = paddle.zeros([2])
    i = paddle.to_tensor(0)
    while i < 4:
        j = paddle.to_tensor(0)
        while j < i:
            if (x * j).sum() > 3:
                total = total + x
            else:
                total = total - 1
            j = j + 1
        i = i + 1
    return total


def conditions(x):
    return x if (x.sum() > 0 and 0 < x.max() < 10) or not x.min() < 0 else -x


def assigns_a_tuple(x):
    pair = (x, 1.0)
    if x.max() > 1:
        pair = (x + 1, 2.0)
    return pair[0] * pair[1]


@pytest.mark.parametrize("full_graph", [True, False, None])
@pytest.mark.parametrize(
    "function",
    [sign_dependent, several_returns, loop_with_break, returns_from_a_loop, nested, conditions, assigns_a_tuple],
)
def test_one_program_serves_all_values(function, full_graph):
    """Whatever way the values take, one compilation gives what Python gives."""
    calls = [(_t(1, 2),), (_t(-1, -2),), (_t(-10, -2),), (_t(0.1, 20),)]
    _agrees(function, *calls, full_graph=full_graph)


@pytest.mark.parametrize("function", [sign_dependent, loop_with_break, nested])
def test_the_compiler_runs_them(function):
    """The compiled program takes the same ways as the interpreted one."""
    _agrees(function, (_t(1, 2),), (_t(-1, -2),), backend="CINN")


def test_range_over_a_tensor():
    """A range with a tensor as its bound is a loop whose length is not part of the program."""

    def f(x, n):
        for i in range(1, n, 2):
            if i == 3:
                continue
            x = x + i
        return x

    calls = [(_t(1, 2), paddle.to_tensor(n)) for n in (8, 0, 2)]
    for full_graph in (True, None):
        _agrees(f, *calls, full_graph=full_graph)


def test_layers_closures_and_callees_are_rewritten_too():
    """Tensor-dependent code is found in sublayers behind framework containers, in closures and in called functions."""

    class Gate(nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            y = self.linear(x)
            if y.sum() > 0:
                y = y * 2
            return y

    model = nn.Sequential(Gate(), nn.ReLU())

    def scaled(x, by):
        return x * by if x.sum() > 1 else x

    def outer(x):
        def inner(y):
            if y.max() > 0:
                return scaled(y, 3)
            return y

        return inner(model(x)) + inner(x)

    with paddle.no_grad():
        _agrees(outer, (_t(1, 2),), (_t(-1, -2),))


def test_super_defaults_and_keywords_survive():
    """A rewritten method keeps super(), its defaults and keyword-only arguments."""

    class Base(nn.Layer):
        def forward(self, x):
            return x + 1

    class Derived(Base):
        def forward(self, x, scale=2.0, *, shift=1.0):
            y = super().forward(x) * scale + shift
            if y.sum() > 0:
                y = y * 10
            return y

    layer = Derived()
    captured = paddle.jit.to_static(layer.forward, full_graph=True, backend="reference")
    for x in (_t(1, 2), _t(-5, -5)):
        np.testing.assert_allclose(captured(x, shift=3.0).numpy(), layer.forward(x, shift=3.0).numpy())


def test_gradients_go_through_an_if():
    """backward() outside and inside of the capture takes the gradient of the branch that ran."""
    for sign in (1.0, -1.0):
        w = paddle.to_tensor(np.array([2.0, 3.0], np.float32) * sign, stop_gradient=False)

        def loss_of(w=w):
            return (w * w).sum() if w.sum() > 0 else (w * 5).sum()

        loss_of().backward()
        expected = w.grad.numpy().copy()
        w.clear_gradient()
        for full_graph in (True, None):
            paddle.jit.to_static(loss_of, full_graph=full_graph, backend="reference")().backward()
            np.testing.assert_allclose(w.grad.numpy(), expected)
            w.clear_gradient()

        def step():
            loss_of().backward()

        paddle.jit.to_static(step, full_graph=True, backend="reference")()
        np.testing.assert_allclose(w.grad.numpy(), expected)


def iterated(w, x):
    """Newton-like steps on a parameter until a tolerance that only values tell."""
    steps = paddle.to_tensor(0)
    while (x * x - w).abs().max() > 1e-3:
        x = (x + w / x) * 0.5
        steps = steps + 1
    return (x * x + w * w).sum() + x.prod(), steps


@pytest.mark.parametrize("backend", ["reference", "CINN"])
def test_gradients_go_back_through_a_loop(backend):
    """backward() outside and inside of the capture, and a gradient of it, go back over the steps that were taken."""
    for values, start in ((_t(2, 9), _t(1, 2)), (_t(4, 16), _t(2, 4)), (_t(2e4, 1e-2), _t(1, 30))):
        w = values.detach()
        w.stop_gradient = False
        y, expected_steps = iterated(w, start)
        (expected,) = paddle.grad(y, w, create_graph=True)
        (second,) = paddle.grad((expected * expected).sum(), w)

        def slopes(w=w, start=start):
            (g,) = paddle.grad(iterated(w, start)[0], w, create_graph=True)
            return g, paddle.grad((g * g).sum(), w)[0]

        for full_graph in (True, None):
            y, steps = paddle.jit.to_static(iterated, full_graph=full_graph, backend=backend)(w, start)
            y.backward()
            assert int(steps) == int(expected_steps)
            np.testing.assert_allclose(w.grad.numpy(), expected.numpy(), rtol=1e-5)
            w.clear_gradient()
        first, again = paddle.jit.to_static(slopes, full_graph=True, backend=backend)()
        np.testing.assert_allclose(first.numpy(), expected.numpy(), rtol=1e-5)
        np.testing.assert_allclose(again.numpy(), second.numpy(), rtol=1e-4)


def test_writes_in_place_to_what_a_branch_or_a_loop_has_made():
    """They are of the branch alone: what it hands on is the tensor as it is at its end."""

    def branch(x, flag):
        if flag.sum() > 0:
            y = x * 2
            y.add_(x)
        else:
            y = x
        return y

    def loop(x, flag):
        i = paddle.zeros([], "int64")
        while i < 3:
            y = x * 2
            y.add_(flag)
            if flag.sum() > 0:
                z = y * 1
                z.add_(x)
                y.add_(z)
            x = x + y
            i = i + 1
        return x

    for function in (branch, loop):
        compiled = paddle.jit.to_static(function, full_graph=True)
        for sign in (1, -1):
            given = paddle.to_tensor([1.0, 2.0]), paddle.full([2], float(sign))
            assert compiled(*given).tolist() == function(*given).tolist()


def test_writes_in_place_leave_the_branch():
    """A buffer that one branch updates has the value of the branch that ran, call after call."""
    count = paddle.to_tensor(np.zeros(2, np.float32))

    def f(x):
        if x.sum() > 0:
            count.add_(x)
        i = paddle.to_tensor(0)
        while i < 2:
            count.scale_(2.0)
            i = i + 1
        return count * 1

    captured = paddle.jit.to_static(f, full_graph=True, backend="reference")
    expected = np.zeros(2, np.float32)
    for x in (_t(1, 2), _t(-1, -2), _t(3, 4)):
        expected = (expected + x.numpy() * (x.numpy().sum() > 0)) * 4
        np.testing.assert_allclose(captured(x).numpy(), expected)
        np.testing.assert_allclose(count.numpy(), expected)


def test_python_values_stay_python():
    """Control flow on Python values runs as Python: the branch not taken is not even looked at."""
    seen = []

    def f(x, mode):
        for name in ("a", "b"):
            seen.append(name)
            if mode == name:
                break
        else:
            seen.append("none")
        return x + len(seen) if mode and x.shape[0] == 2 else undefined_name  # noqa: F821

    captured = paddle.jit.to_static(f, full_graph=True, backend="reference")
    assert captured(_t(1, 2), "a").tolist() == [2.0, 3.0]
    assert seen == ["a"]


def test_errors_name_the_variable_and_the_users_line():
    """A variable that is set on one side only, or of different shapes, is named; tracebacks show the user's lines."""

    def one_sided(x):
        if x.sum() > 0:
            y = x
        return y * 2

    def of_two_shapes(x):
        if x.sum() > 0:
            y = x
        else:
            y = x.sum()
        return y

    with pytest.raises(NameError, match="'y' is set in only one branch") as caught:
        paddle.jit.to_static(one_sided, full_graph=True, backend="reference")(_t(1, 2))
    lines = {entry.frame.code.raw.co_name: entry.lineno + 1 for entry in caught.traceback}
    assert lines["one_sided"] == one_sided.__code__.co_firstlineno + 1
    with pytest.raises(TypeError, match=r"'y' has shape \[2\] where the condition holds and \[\] where not"):
        paddle.jit.to_static(of_two_shapes, full_graph=True, backend="reference")(_t(1, 2))


def test_a_loop_must_keep_shapes():
    """A variable that grows with each step is refused by name."""

    def f(x):
        while x.sum() < 10:
            x = paddle.concat([x, x])
        return x

    with pytest.raises(TypeError, match=r"'x' has shape \[2\] before a step .* \[4\] after it"):
        paddle.jit.to_static(f, full_graph=True, backend="reference")(_t(1, 2))
    assert paddle.jit.to_static(f, backend="reference")(_t(1, 2)).shape == [8]


def test_code_shows_the_rewritten_function():
    """``code`` is Python source; the original stays available."""
    captured = paddle.jit.to_static(sign_dependent, full_graph=True)
    assert "if_(" in captured.code
    assert captured.rollback() is sign_dependent
    compile(captured.code, "shown", "exec")


def test_marked_functions_and_modules_are_left_alone():
    """not_to_static functions run as they are within a capture: their if on a tensor cannot be captured."""

    @paddle.jit.not_to_static
    def marked(x):
        if x.sum() > 0:
            return x
        return -x

    def f(x):
        return marked(x)

    with pytest.raises(NotImplementedError, match=r"bool\(\)"):
        paddle.jit.to_static(f, full_graph=True, backend="reference")(_t(1, 2))
    with pytest.raises(TypeError, match="list of modules"):
        paddle.jit.ignore_module(["numpy"])


def sharing_a_name(x):
    """What a method of this name calls."""
    return x * 3


def test_a_method_may_be_called_like_a_global_function():
    """Within a rewritten method its own name means what it meant: the global."""

    class Holder(nn.Layer):
        def sharing_a_name(self, x):
            return sharing_a_name(x) if x.sum() > 0 else x

        def forward(self, x):
            return self.sharing_a_name(x)

    _agrees(Holder().forward, (_t(1, 2),), (_t(-1, -2),))


def test_derivatives_along_a_curve_through_a_loop_and_a_branch():
    """jet of a captured loop of Runge-Kutta steps, of a number known at run time, and of a branch: as eager ones."""

    def steps(x, n):
        i = paddle.zeros([], dtype="int64")
        while i < n:
            x = x + 0.1 * paddle.sin(x + 0.05 * paddle.sin(x))
            i = i + 1
        return paddle.static.nn.cond(n > 3, lambda: x * x, lambda: x)

    def along(x, n):
        return paddle.autograd.jet(lambda z: steps(z, n), (x,), ((1.0, 0.0, 0.5),))[1]

    captured = paddle.jit.to_static(along, full_graph=True)
    x = paddle.to_tensor([0.3, 0.8], dtype="float64")
    for count in (2, 5):
        n = paddle.to_tensor(count)
        for got, expected in zip(captured(x, n), along(x, n), strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-10)


def _nested_function(statement, depth, seen):
    """``statement`` within itself; ``seen`` grows whenever the innermost body is traced."""
    lines = ["def f(x):", "    y = x"]
    for i in range(depth):
        inner = "    " * (i + 1)
        if statement == "while":
            lines += [f"{inner}i{i} = paddle.zeros([], 'int64')", f"{inner}while i{i} < 1:"]
            lines.append(f"{inner}    i{i} = i{i} + 1")
        else:
            lines.append(inner + {"if": f"if x.sum() > {i}:", "for": f"for i{i} in range(one):"}[statement])
        lines.append(f"{inner}    y = y + 1")
    lines += ["    " * (depth + 1) + "seen.append(0)", "    return y"]
    path = f"<nested {statement}>"
    linecache.cache[path] = (0, None, [line + "\n" for line in lines], path)
    names = {"paddle": paddle, "seen": seen, "one": paddle.ones([], "int64")}
    exec(compile("\n".join(lines), path, "exec"), names)
    return names["f"]


@pytest.mark.parametrize("statement", ["if", "while", "for"])
def test_what_nests_is_traced_once(statement):
    """Not twice for each level: 2^18 traces would take hours."""
    seen, depth = [], 18
    captured = paddle.jit.to_static(_nested_function(statement, depth, seen), full_graph=True)
    np.testing.assert_array_equal(captured(_t(100)).numpy(), [100 + depth])
    assert len(seen) <= 2


def _counting_function(depth, seen, start, step):
    """Loops within each other that count a number up from ``start``; ``seen`` grows with each innermost trace."""
    lines = ["def f(x, n):", "    y, total = x, 0"]
    for i in range(depth):
        inner = "    " * (i + 1)
        lines += [f"{inner}i{i} = {start}", f"{inner}while i{i} < n:", f"{inner}    i{i} = i{i} + 1"]
        lines += [f"{inner}    total = total + {step}", f"{inner}    y = y + x * i{i}"]
    lines += ["    " * (depth + 1) + "seen.append(0)", "    return y, total"]
    path = f"<counting {depth} {start} {step}>"
    linecache.cache[path] = (0, None, [line + "\n" for line in lines], path)
    names = {"paddle": paddle, "seen": seen}
    exec(compile("\n".join(lines), path, "exec"), names)
    return names["f"]


@pytest.mark.parametrize(("start", "step"), [("0", "1"), ("0", "i0"), ("total", "1")])
def test_numbers_that_become_tensors_cost_a_trace_for_each_level(start, step):
    """Loops within a loop keep what they found to carry: 2^8 traces would be needed to find it again and again."""
    seen, depth = [], 8
    plain = _counting_function(depth, [], start, step)
    captured = paddle.jit.to_static(_counting_function(depth, seen, start, step), full_graph=True)
    for got, expected in zip(captured(_t(2), paddle.to_tensor(1)), plain(_t(2), 1), strict=True):
        np.testing.assert_array_equal(got.numpy(), np.asarray(expected))
    assert len(seen) <= 2 * depth
    for count in (2, 3):
        shallow = _counting_function(3, [], start, step)
        again = paddle.jit.to_static(_counting_function(3, [], start, step), full_graph=True)
        for got, expected in zip(again(_t(2), paddle.to_tensor(count)), shallow(_t(2), count), strict=True):
            np.testing.assert_array_equal(got.numpy(), np.asarray(expected))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_training_and_drawing_in_loops_within_loops(depth):
    """Inner loops that update weights, draw, widen a counter and keep a running state give what eager execution gives,
    however often they are traced."""

    def run(capture):
        paddle.seed(7)
        layer = paddle.nn.Linear(2, 2)
        layer.register_buffer("steps", paddle.zeros([]))
        optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())

        def step(x, scale):
            loss = (layer(x) * scale).square().mean() + paddle.rand([2]).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            layer.steps.add_(paddle.ones([]))
            return loss

        def inner(x, n, level, scale):
            i, total = 0, 0.0
            while i < n:
                total = total + step(x, scale)
                if level:
                    total = total + inner(x, n, level - 1, scale + i)
                i = i + 1
            return total

        def f(x, n):
            return inner(x, n, depth - 1, 1)

        made = (paddle.jit.to_static(f, full_graph=True) if capture else f)(paddle.ones([3, 2]), paddle.to_tensor(2))
        return [made, layer.weight, layer.bias, layer.steps]

    for got, expected in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5)


def test_a_signal_ends_an_endless_loop_of_a_file(tmp_path):
    """The call raises what the signal's handler raises (KeyboardInterrupt for Ctrl-C), captured and from a file."""

    def until(x, limit):
        while x.sum() < limit:
            x = x + 1
        return x

    captured = paddle.jit.to_static(until, full_graph=True)
    paddle.jit.save(captured, tmp_path / "endless", input_spec=[_t(0), _t(5).sum()])
    served = paddle.jit.load(tmp_path / "endless")
    for run in (captured, served):
        assert run(_t(0), _t(3).sum()).tolist() == [3]
        handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(KeyboardInterrupt):
                run(_t(0), _t(1 << 25).sum())  # 2^24 + 1 is 2^24
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert run(_t(0), _t(3).sum()).tolist() == [3]

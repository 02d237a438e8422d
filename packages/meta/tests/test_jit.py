"""to_static: one compilation, guards, run-time scalars, states, and few Python calls."""

import gc
import sys
import weakref

import numpy as np
import pytest

import argosy as paddle

pytestmark = pytest.mark.usefixtures("verified_passes")

nn = paddle.nn
BACKENDS = ["reference", "CINN"]


def _static(function, **options):
    return paddle.jit.to_static(function, full_graph=True, backend="reference", **options)


def _x(*shape):
    return paddle.to_tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_layers_functions_and_methods_give_what_eager_gives():
    """A decorated function, a decorated method and a wrapped layer compute what the plain ones do."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = _x(5, 3)
    with paddle.no_grad():
        expected = model(x).numpy()
        np.testing.assert_allclose(_static(lambda x: model(x))(x).numpy(), expected, rtol=1e-6)

        class Wrapped(nn.Layer):
            def __init__(self):
                super().__init__()
                self.model = model

            @paddle.jit.to_static(full_graph=True, backend="reference")
            def forward(self, x):
                return self.model(x)

        np.testing.assert_allclose(Wrapped()(x).numpy(), expected, rtol=1e-6)
        assert _static(model) is model
        np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-6)


def test_results_keep_their_structure():
    """Nested results come back nested, with plain values as they were."""

    def f(x, scale):
        return {"y": [x * scale, (x + 1, "text", 3)]}

    result = _static(f)(_x(2), 2)
    assert list(result) == ["y"]
    np.testing.assert_array_equal(result["y"][0].numpy(), _x(2).numpy() * 2)
    assert result["y"][1][1:] == ("text", 3)


def test_shapes_and_modes_are_guarded():
    """Another shape, another mode or another value of an attribute is another program; the same again is not."""
    layer = nn.Linear(3, 3)
    layer.factor = 2
    f = _static(lambda x: layer(x) * layer.factor if layer.training else layer(x))
    with paddle.no_grad(), paddle.jit.count_compiles() as compiles:
        f(_x(1, 3))
        f(_x(1, 3))
        assert compiles.value == 1
        f(_x(2, 3))
        layer.eval()
        f(_x(1, 3))
        assert compiles.value == 3
        layer.train()
        f(_x(1, 3))
        assert compiles.value == 3
        layer.factor = 3
        np.testing.assert_allclose(f(_x(1, 3)).numpy(), layer(_x(1, 3)).numpy() * 3, rtol=1e-6)
        assert compiles.value == 4
        layer.weight = paddle.create_parameter([3, 3], "float32", default_initializer=nn.initializer.Constant(0.0))
        np.testing.assert_array_equal(f(_x(1, 3)).numpy(), np.zeros((1, 3)))


FACTOR = 2


def test_globals_and_closure_cells_are_guarded():
    """Changing a global or a closed-over number changes the result."""
    shift = 1.0

    def inner(x):
        return x * FACTOR

    def outer(x):
        return inner(x) + shift

    f = _static(outer)
    x = _x(2)
    np.testing.assert_allclose(f(x).numpy(), x.numpy() * 2 + 1, rtol=1e-6)
    shift = 5.0
    np.testing.assert_allclose(f(x).numpy(), x.numpy() * 2 + 5, rtol=1e-6)
    globals()["FACTOR"] = 3
    try:
        np.testing.assert_allclose(f(x).numpy(), x.numpy() * 3 + 5, rtol=1e-6)
    finally:
        globals()["FACTOR"] = 2


def test_changing_floats_become_inputs():
    """The second value of a float argument makes it an input; from then on no value compiles anything."""
    f = _static(lambda x, s: x * s)
    x = _x(3)
    with paddle.jit.count_compiles() as compiles:
        for s in (1.0, 2.0, 3.0, 4.0, 1.0):
            np.testing.assert_allclose(f(x, s).numpy(), x.numpy() * np.float32(s), rtol=1e-6)
    assert compiles.value == 2


def test_floats_that_python_needs_stay_values():
    """A float that decides an if is part of the program: each value is captured."""
    f = _static(lambda x, s: x * 2 if s > 1 else x)
    x = _x(3)
    for s, factor in ((0.5, 1), (2.0, 2), (3.0, 2), (0.5, 1)):
        np.testing.assert_allclose(f(x, s).numpy(), x.numpy() * factor)


def test_open_sizes_compile_once():
    """With None in the InputSpec one program serves every size, and other dtypes are refused."""
    f = _static(lambda x: x * 2 + x.sum(), input_spec=[paddle.static.InputSpec([None, 3], "float32")])
    with paddle.jit.count_compiles() as compiles:
        for n in (1, 4, 7):
            x = _x(n, 3)
            np.testing.assert_allclose(f(x).numpy(), x.numpy() * 2 + x.numpy().sum(), rtol=1e-5)
    assert compiles.value == 1
    with pytest.raises(ValueError, match=r"shape \[2, 4\].*InputSpec"):
        f(_x(2, 4))


def test_tensor_dependent_python_teaches():
    """Code that needs a value says what it needs, where, and what to do instead."""

    def f(x):
        return x if x.numpy().sum() > 0 else -x

    with pytest.raises(NotImplementedError, match=r"cannot capture f as one program: numpy\(\)(.|\n)*paddle.where"):
        _static(f)(_x(2))


def test_random_numbers_go_on_as_in_eager():
    """Dropout in a captured step draws what eager dropout draws, and goes on from call to call."""
    layer = nn.Dropout(0.5)
    f = _static(lambda x: layer(x))
    x = paddle.to_tensor(np.ones((4, 4), np.float32))
    paddle.seed(3)
    eager = [layer(x).numpy() for _ in range(3)]
    paddle.seed(3)
    captured = [f(x).numpy() for _ in range(3)]
    np.testing.assert_array_equal(eager, captured)


def _trainer(backend, schedule=None):
    paddle.seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    rate = 0.05 if schedule is None else schedule
    optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return (
        model,
        optimizer,
        step if backend is None else paddle.jit.to_static(step, full_graph=True, backend=backend),
    )


def _labels(n):
    return paddle.to_tensor(np.arange(n) % 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_whole_training_step_is_one_program(backend):
    """Forward, backward, clipping and AdamW captured together train as eager does, with one compilation."""
    x, y = _x(9, 6), _labels(9)
    schedules = [paddle.optimizer.lr.StepDecay(0.05, 2) for _ in range(2)]
    eager_model, _, eager = _trainer(None, schedules[0])
    model, _, step = _trainer(backend, schedules[1])
    with paddle.jit.count_compiles() as compiles:
        for _ in range(6):
            a, b = float(eager(x, y)), float(step(x, y))
            assert b == pytest.approx(a, rel=1e-5)
            for schedule in schedules:
                schedule.step()
    assert compiles.value == 1
    for p, q in zip(eager_model.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=2e-5, atol=1e-6)


def test_gradients_left_over_accumulate():
    """A captured step that does not clear gradients leaves them in .grad and adds to them at the next call."""
    w = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(3.0))

    def accumulate(x):
        (w * x).sum().backward()

    f = _static(accumulate)
    for times in range(1, 5):
        f(paddle.to_tensor([1.0, 2.0]))
        assert w.grad.tolist() == [1.0 * times, 2.0 * times]
    w.clear_grad()
    f(paddle.to_tensor([1.0, 2.0]))
    assert w.grad.tolist() == [1.0, 2.0]


def test_stepping_a_schedule_inside_is_refused():
    """A schedule stepped within the captured function would move once, so it raises and says where to put it."""
    schedule = paddle.optimizer.lr.StepDecay(0.1, 1)
    with pytest.raises(RuntimeError, match="outside"):
        _static(lambda x: (schedule.step(), x)[1])(_x(1))


def test_a_captured_call_makes_few_python_calls():
    """Around the executable a call of a whole training step is fewer than 30 Python function calls."""
    _, _, step = _trainer("reference")
    x, y = _x(9, 6), _labels(9)
    for _ in range(3):
        step(x, y)
    (compiled,) = step.compiled
    made = compiled.run([x.payload, y.payload])
    compiled.run = lambda payloads: made
    calls = []
    gc.collect()
    gc.disable()  # what it would finalize is not the call's
    try:
        sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
        step(x, y)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert len(calls) < 30, " ".join(calls)


def test_looking_at_gradients_between_steps_costs_one_more_program():
    """Reading .grad after a step that cleared it shows zeros, and does not compile anew at every step."""
    model, _, step = _trainer("reference")
    eager_model, _, eager = _trainer(None)
    x, y = _x(9, 6), _labels(9)
    with paddle.jit.count_compiles() as compiles:
        for _ in range(5):
            step(x, y)
            eager(x, y)
            assert not model[0].weight.grad.numpy().any()
    assert compiles.value == 2
    np.testing.assert_allclose(model[0].weight.numpy(), eager_model[0].weight.numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_through_a_captured_forward(backend):
    """A backward() outside goes through the captured forward as one node and gives eager's gradients."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    forward = paddle.jit.to_static(lambda x: (model(x), x * 2), full_graph=True, backend=backend)
    x, z = _x(5, 3), _x(5, 3)
    x.stop_gradient = z.stop_gradient = False
    with paddle.jit.count_compiles() as compiles:
        for _ in range(2):
            y, doubled = forward(x)
            ((y**2).sum() + doubled.sum()).backward()
    assert compiles.value == 1
    found = [p.grad.numpy() for p in (*model.parameters(), x)]
    for p in model.parameters():
        p.clear_gradient(set_to_zero=False)
    for _ in range(2):
        ((model(z) ** 2).sum() + (z * 2).sum()).backward()
    for a, p in zip(found, (*model.parameters(), z), strict=True):
        np.testing.assert_allclose(a, p.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_parameters_changed_before_backward_are_noticed():
    """Changing a parameter between a captured forward and its backward is an error, as in eager."""
    layer = nn.Linear(2, 2)
    y = _static(lambda x: layer(x))(_x(1, 2))
    with paddle.no_grad():
        layer.weight.set_value(np.zeros((2, 2), np.float32))
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_a_forward_that_cannot_be_repeated_runs_plainly():
    """A forward trained from outside that writes to an argument is not captured, says so once, and trains right."""
    x, count = _x(4, 4), paddle.zeros([])
    x.stop_gradient = False

    def forward(x, count):
        count.add_(paddle.ones([]))
        return x * x

    f = _static(forward)
    with pytest.warns(UserWarning, match="trained from outside and writes to its arguments"):
        y = f(x, count)
    f(x, count)
    y.sum().backward()
    np.testing.assert_allclose(x.grad, 2 * x.numpy())
    assert float(count) == 2


class Trainer:
    """A user's object whose method is captured."""

    def __init__(self):
        self.layer = nn.Linear(2, 2)
        self.scale, self.calls = 2.0, 0

    def scaled(self, x):
        return self.layer(x) * self.scale

    def run(self, x):
        self.calls += 1
        return self.scaled(x)


def test_methods_of_plain_objects_watch_what_they_read():
    """Attributes that a method and the methods it calls read are guarded; what it changes itself is not."""
    trainer = Trainer()
    f = _static(trainer.run)
    with paddle.no_grad(), paddle.jit.count_compiles() as compiles:
        for _ in range(3):
            f(_x(1, 2))
        assert compiles.value == 1
        trainer.scale = 3.0
        np.testing.assert_allclose(f(_x(1, 2)).numpy(), trainer.layer(_x(1, 2)).numpy() * 3, rtol=1e-6)
        trainer.layer = nn.Linear(2, 2)
        np.testing.assert_allclose(f(_x(1, 2)).numpy(), trainer.layer(_x(1, 2)).numpy() * 3, rtol=1e-6)
        assert compiles.value == 3


def test_capturing_again_and_again_warns_with_the_reason():
    """A value that changes with every call is named after eight captures."""
    trainer = Trainer()
    f = _static(trainer.scaled)
    with paddle.no_grad():
        for i in range(8):
            trainer.scale = float(i)
            f(_x(1, 2))
        trainer.scale = 8.0
        with pytest.warns(UserWarning, match=r"scale was 7\.0 and is 8\.0"):
            f(_x(1, 2))


def test_arguments_written_in_place_or_differentiated_are_so_for_the_caller():
    """An in-place operation on an argument changes the caller's tensor; backward() inside sets its gradient."""

    def f(x, w):
        x.add_(paddle.ones_like(x))
        (w * w).sum().backward()
        return x * 2

    x, w = _x(3), paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    before = x.numpy()
    static = _static(f)
    for times in (1, 2):
        y = static(x, w)
        np.testing.assert_allclose(x.numpy(), before + times, rtol=1e-6)
        np.testing.assert_allclose(y.numpy(), 2 * x.numpy(), rtol=1e-6)
        assert w.grad.tolist() == [2.0 * times, 4.0 * times]


def test_the_compile_log_says_what_and_why(capsys, monkeypatch, tmp_path):
    """ARGOSY_LOG=compile prints a line for each compilation with its reason; ARGOSY_DUMP leaves programs that parse."""
    monkeypatch.setenv("ARGOSY_LOG", "compile")
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path))
    layer = nn.Linear(2, 2)
    f = _static(lambda x: layer(x))
    with paddle.no_grad():
        f(_x(1, 2))
        layer.eval()
        f(_x(1, 2))
        f(_x(3, 2))
    lines = capsys.readouterr().err.splitlines()
    assert "first call" in lines[0]
    assert "training was True and is False" in lines[1]
    assert "other shapes" in lines[2]
    from argosy_pir.program import Program

    dumped = sorted(tmp_path.rglob("*.pir"))
    assert len(dumped) >= 15
    for path in dumped:
        Program.parse(path.read_text())


class Average(nn.Layer):
    """Keeps a running mean by assignment, as one writes it eagerly."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("mean", paddle.to_tensor(np.zeros(2, np.float32)))
        self.register_buffer("count", paddle.to_tensor([0]))
        self.last = None

    def forward(self, x):
        y = self.linear(x)
        self.mean = self.mean * 0.5 + y.mean(0) * 0.5
        self.count.add_(paddle.to_tensor([1]))
        return y - self.mean


def test_buffers_assigned_in_a_captured_function_are_states():
    """Assigning a buffer or changing it in place goes on from call to call, as in eager."""
    paddle.seed(2)
    eager = Average()
    captured = Average()
    captured.set_state_dict(eager.state_dict())
    buffer = captured.mean
    f = _static(lambda x: captured(x))
    with paddle.no_grad(), paddle.jit.count_compiles() as compiles:
        for _ in range(3):
            np.testing.assert_allclose(f(_x(4, 2)).numpy(), eager(_x(4, 2)).numpy(), rtol=1e-5, atol=1e-6)
    assert compiles.value == 1
    assert captured.mean is buffer
    np.testing.assert_allclose(captured.mean.numpy(), eager.mean.numpy(), rtol=1e-5)
    assert captured.count.tolist() == eager.count.tolist() == [3]


def test_keeping_a_computed_tensor_where_there_was_none():
    """An attribute that was None and that each call sets to a computed tensor holds that of the newest call."""
    layer = Average()

    def f(x):
        layer.last = layer(x)
        return layer.last * 2

    run = _static(f)
    with paddle.no_grad():
        for i in range(3):
            np.testing.assert_array_equal(run(_x(4 + i % 2, 2)).numpy(), layer.last.numpy() * 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_training_step_on_inputs_with_open_batches_is_compiled_once(backend):
    """Two inputs with batch None train at batches from 1 to 129 with one compilation, as the eager step does."""
    specs = [paddle.static.InputSpec([None, 5]), paddle.static.InputSpec([None], "int64")]
    models = [nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(2)]
    models[1].set_state_dict(models[0].state_dict())
    optimizers = [paddle.optimizer.Adam(0.01, parameters=model.parameters()) for model in models]

    def step(model, optimizer, x, label):
        loss = nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    captured = paddle.jit.to_static(
        lambda x, label: step(models[1], optimizers[1], x, label), full_graph=True, backend=backend, input_spec=specs
    )
    with paddle.jit.count_compiles() as compiles:
        for n in (*range(1, 9), 16, 31, 64, 100, 129):
            x, label = _x(n, 5), paddle.arange(n) % 3
            expected = step(models[0], optimizers[0], x, label)
            np.testing.assert_allclose(captured(x, label).item(), expected.item(), rtol=2e-4)
    assert compiles.value == 1
    for plain, static in zip(models[0].parameters(), models[1].parameters(), strict=True):
        np.testing.assert_allclose(static.numpy(), plain.numpy(), rtol=2e-3, atol=2e-5)


def test_open_batches_that_differ_are_another_program_or_an_error():
    """What does not need equal sizes runs for different ones; what does says which operands differ."""
    specs = [paddle.static.InputSpec([None, 3]), paddle.static.InputSpec([None, 3])]
    separate = _static(lambda x, y: (x.sum(0), y * 2), input_spec=specs)
    joined = _static(lambda x, y: x + y, input_spec=specs)
    with paddle.jit.count_compiles() as compiles:
        for n, m in ((2, 2), (4, 4), (2, 3), (5, 4), (7, 7)):
            np.testing.assert_array_equal(separate(_x(n, 3), _x(m, 3))[1].numpy(), _x(m, 3).numpy() * 2)
    assert compiles.value == 2
    np.testing.assert_array_equal(joined(_x(2, 3), _x(2, 3)).numpy(), 2 * _x(2, 3).numpy())
    with pytest.raises(ValueError, match=r"\[2, 3\].*\[4, 3\] do not broadcast"):
        joined(_x(2, 3), _x(4, 3))


def test_a_captured_function_that_its_closure_holds_is_not_kept_for_ever():
    class Holder:
        pass

    def made(holder):
        def forward(x):
            return x * 2 if holder is not None else x

        holder.forward = forward
        return forward

    holder = Holder()
    held = weakref.ref(holder)
    paddle.jit.to_static(made(holder), full_graph=True)(paddle.ones([2]))
    del holder
    gc.collect()
    assert held() is None


_DETACHED = {
    "before": lambda w: w.detach() * w,
    "after": lambda w: w * w.detach(),
    "apart": lambda w: w + w.detach() ** 2,
    "earlier": lambda w: (lambda m: w * m)(w.detach().sum()),
    "twice": lambda w: (w.detach() * 2 + w.detach()) * w + w.detach(),
}


@pytest.mark.parametrize("name", _DETACHED)
def test_captured_leaves_may_be_read_detached(name):
    """A parameter has its gradient, and what was detached from it none, whichever is read first."""
    function = _DETACHED[name]

    def gradient(w):
        w.clear_gradient(False)
        function(w).sum().backward()
        return w.grad

    w = paddle.to_tensor([0.4, 0.5, 0.6], stop_gradient=False)
    expected = gradient(w).numpy().copy()
    w.clear_gradient(False)
    found = paddle.jit.to_static(lambda: gradient(w), full_graph=True)()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)

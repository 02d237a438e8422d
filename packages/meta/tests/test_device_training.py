"""Training on a device: losses, gradients and states are those of the CPU, with no operator falling back to it."""

import re
import sys
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

import argosy as paddle
from argosy import nn, static
from argosy_hwadapt import DeviceLost, DeviceOutOfMemory, KernelBuildError, UnsupportedOperation, device, registry, why
from argosy_hwadapt.virtual import VirtualRuntime
from argosy_infer import Predictor
from argosy_phi_ops.eager.fallback import clear_fallbacks, fallbacks
from argosy_phi_ops.errors import DeviceMismatch, OperatorError
from argosy_tensorcore.place import Place

VIRTUAL = Place("virtual")
without_opencl = pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")
on_devices = pytest.mark.parametrize("name", ["virtual", pytest.param("opencl", marks=without_opencl)])


@pytest.fixture(autouse=True)
def no_fallback(monkeypatch):
    """What has no code for the device is an error."""
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")


@pytest.fixture
def on_device():
    """New tensors are made on the device."""
    paddle.set_device("virtual")
    yield
    paddle.set_device("cpu")


def there(data, **options):
    return paddle.to_tensor(data, place="virtual", **options)


def losses(place, captured, optimizer):
    """Of five steps of a small network with dropout and layer norm."""
    paddle.seed(3)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 4)).to(place)
    update = optimizer(1e-2, parameters=net.parameters())

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        update.step()
        update.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if captured else step
    rng = np.random.default_rng(0)
    batches = zip(rng.standard_normal((5, 12, 8)).astype("float32"), rng.integers(0, 4, (5, 12)), strict=True)
    made = [float(run(paddle.to_tensor(x, place=place), paddle.to_tensor(y, place=place))) for x, y in batches]
    assert net[0].weight.place == Place(place)
    return made


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("rule", ["SGD", "Adam", "AdamW", "Momentum"])
@on_devices
def test_a_network_trains_on_a_device_as_on_the_cpu(captured, rule, name):
    """Random masks are bit for bit the same; sums may be ordered otherwise."""
    optimizer = getattr(paddle.optimizer, rule)
    expected, made = (losses(place, captured, optimizer) for place in ("cpu", name))
    np.testing.assert_allclose(made, expected, rtol=1e-4)
    assert made[-1] != made[0]


@on_devices
def test_a_convolutional_network_has_the_gradients_and_statistics_of_the_cpu(name):
    """Convolution, batch norm (whose statistics are written in place), pooling."""
    paddle.seed(1)
    net = nn.Sequential(
        nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(36, 5)
    )  # fmt: skip
    before = {key: x.numpy() for key, x in net.state_dict().items()}
    image = np.random.default_rng(0).random((2, 3, 8, 8)).astype("float32")
    found = []
    for place in ("cpu", name):
        net.set_state_dict(before)
        net.to(place)
        net(paddle.to_tensor(image, place=place)).square().sum().backward()
        grads = [p.grad.numpy() for p in net.parameters() if not p.stop_gradient]
        found.append([*grads, net[1]._mean.numpy(), net[1]._variance.numpy()])
        for p in net.parameters():
            p.clear_gradient(False)
    for here, far in zip(*found, strict=True):
        np.testing.assert_allclose(far, here, rtol=1e-4, atol=1e-5)


def test_new_tensors_and_layers_are_made_on_the_device_that_is_set(on_device):
    """Data, fills, draws and parameters; they compute together."""
    layer = nn.Linear(2, 2)
    made = [paddle.to_tensor([1.0]), paddle.zeros([2]), paddle.rand([2]), paddle.arange(3), layer.weight, layer.bias]
    assert {x.place for x in made} == {VIRTUAL}
    assert paddle.get_device() == "virtual:0"
    assert layer(paddle.ones([1, 2])).place == VIRTUAL


def test_writes_in_place_reach_views(monkeypatch):
    """Rows, which lie in one piece, and columns, which do not and go through the host: that is counted, or refused."""
    x = there(np.zeros((3, 4), "float32"))
    x[1].add_(there(np.ones(4, "float32")))
    with pytest.raises(UnsupportedOperation, match="a write in place has no code for virtual:0"):
        x[:, 2].add_(there(np.ones(3, "float32")))
    assert x.sum().item() == 4
    monkeypatch.setenv("ARGOSY_FALLBACK", "silent-counted")
    clear_fallbacks()
    x[:, 2].add_(there(np.ones(3, "float32")))
    (found,) = fallbacks()
    assert (found.operator, found.device, found.calls, found.nbytes) == ("a write in place", "virtual:0", 1, 24)
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    x[x > 1.5] = 7.0
    x[0, 0] = 5.0
    assert x.tolist() == [[5, 0, 1, 0], [1, 1, 7, 1], [0, 0, 1, 0]]
    assert x.zero_().tolist() == [[0] * 4] * 3
    assert x.inplace_version == 5


def next_line():
    return sys._getframe(1).f_lineno + 1


@on_devices
def test_an_index_out_of_range_is_an_error_of_the_next_synchronisation(name):
    """Of the operator by name, and of the line that called it, not of those with the same code; the device goes on."""
    x, wrong, right = (paddle.to_tensor(data, place=name) for data in (np.arange(4, dtype="float32"), [1, 9], [1, 3]))
    paddle.gather(x, right)
    line = next_line()
    paddle.gather(x, wrong)
    paddle.gather(x, right)
    here = re.escape(f", at {__file__}:{line} in test_an_index_out_of_range")
    with pytest.raises(IndexError, match=f"gather: index 9 is out of range; .*{here}"):
        paddle.device.synchronize(name)
    paddle.device.synchronize(name)
    assert paddle.gather(x, right).tolist() == [1, 3]


def test_an_index_of_a_captured_program_is_of_the_line_that_reads_by_it():
    """Not of the line that calls the program."""
    line = next_line() + 2

    def read(x, i):
        return paddle.gather(x, i) * 2

    paddle.jit.to_static(read, full_graph=True)(there(np.arange(4, dtype="float32")), there([1, 9]))
    with pytest.raises(IndexError, match=re.escape(f"{__file__}:{line}")):
        paddle.device.synchronize("virtual")


@on_devices
@pytest.mark.parametrize("call", [
    lambda put: paddle.clip(put([1.0, 2.0]), 5, 1),
    lambda put: paddle.clip(put([1.0, 2.0]), put([5.0]), put([1.0])),
    lambda put: paddle.histogram(put([1.0, np.nan]), 4),
    lambda put: paddle.inverse(put([[1.0, 2.0], [2.0, 4.0]])),
    lambda put: paddle.linalg.solve(put(np.zeros((2, 2), "float32")), put([1.0, 2.0])),
], ids=["clip", "clip-by-tensors", "histogram", "inverse", "solve"])  # fmt: skip
def test_values_are_refused_as_on_the_cpu(call, name, monkeypatch):
    """At the call, in the same words, whether there is code for the operator or not."""
    monkeypatch.setenv("ARGOSY_FALLBACK", "silent-counted")
    words = []
    for place in ("cpu", name):
        for _ in range(2):
            with pytest.raises(OperatorError) as refused:
                call(lambda data, place=place: paddle.to_tensor(data, "float32", place=place))
            words.append(str(refused.value))
    assert len(set(words)) == 1
    x = paddle.to_tensor([1.0, 7.0], place=name)
    assert (x.clip(2, 5).tolist(), paddle.histogram(x, 2).tolist()) == ([2, 5], [1, 1])


@on_devices
def test_a_matrix_that_is_not_positive_definite_is_refused(name):
    """Where no library says so."""
    with pytest.raises(OperatorError, match="not positive definite"):
        paddle.linalg.cholesky(paddle.to_tensor([[1.0, 2.0], [2.0, 1.0]], place=name))


def test_hooks_layers_of_the_user_and_second_derivatives():
    """What autograd offers on the host; gradients are on the device."""

    class Cube(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensor()
            return 3 * g * x * x

    x = there(np.full(3, 2, "float32"), stop_gradient=False)
    x.register_hook(lambda g: g * 10)
    Cube.apply(x).sum().backward()
    assert (x.grad.tolist(), x.grad.place) == ([120] * 3, VIRTUAL)
    (first,) = paddle.grad((x**3).sum(), x, create_graph=True)
    (second,) = paddle.grad(first.sum(), x)
    assert second.tolist() == [12] * 3


def test_gradients_go_through_copies_in_both_directions():
    """And are where their tensor is."""
    x = there(np.ones(3, "float32"), stop_gradient=False)
    (x * 2).cpu().square().sum().backward()
    assert (x.grad.tolist(), x.grad.place) == ([8] * 3, VIRTUAL)
    y = paddle.ones([3])
    y.stop_gradient = False
    (y * 3).to("virtual").square().sum().backward()
    assert (y.grad.tolist(), y.grad.place.is_cpu_place()) == ([18] * 3, True)


def test_autocast_computes_in_float16_on_the_device():
    x = there(np.ones((4, 4), "float32"), stop_gradient=False)
    with paddle.amp.auto_cast(dtype="float16", level="O1"):
        y = x @ x
    assert (y.dtype, y.place) == (paddle.float16, VIRTUAL)
    y.sum().backward()
    assert x.grad.tolist() == [[8] * 4] * 4


def test_states_are_loaded_where_their_tensors_are(tmp_path):
    """From either place to either place."""
    layer = nn.Linear(3, 3).to("virtual")
    paddle.save(layer.state_dict(), str(tmp_path / "layer.pdparams"))
    for place in ("cpu", "virtual"):
        other = nn.Linear(3, 3).to(place)
        other.set_state_dict(paddle.load(str(tmp_path / "layer.pdparams")))
        assert other.weight.numpy().tolist() == layer.weight.numpy().tolist()
        other.set_state_dict(layer.state_dict())
        assert other.weight.place == Place(place)


def test_tensors_without_elements_stay_on_their_device():
    x = there(np.zeros((0, 3), "float32"))
    assert ((x + x).shape, (x + x).place, x.sum().item()) == ([0, 3], VIRTUAL, 0.0)


def test_a_static_program_trains_where_its_parameters_are():
    """Made, fed and fetched through the executor."""
    found = []
    for place in ("cpu", "virtual"):
        paddle.seed(0)
        paddle.set_device(place)
        paddle.enable_static()
        try:
            main, start = static.Program(), static.Program()
            with static.program_guard(main, start):
                x, y = static.data("x", [4, 3], "float32"), static.data("y", [4, 1], "float32")
                loss = (static.nn.fc(x, 1) - y).square().mean()
                paddle.optimizer.SGD(0.1).minimize(loss)
            executor, rng = static.Executor(), np.random.default_rng(0)
            executor.run(start)
            feeds = [{"x": rng.random((4, 3), "float32"), "y": rng.random((4, 1), "float32")} for _ in range(3)]
            found.append([float(executor.run(main, feed=feed, fetch_list=[loss])[0]) for feed in feeds])
        finally:
            paddle.disable_static()
            paddle.set_device("cpu")
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)
    assert found[0][0] != found[0][1]


def test_a_layer_of_a_saved_program_runs_where_its_weights_are(tmp_path):
    """With the weights as they are, wherever they were trained; copies are where they are."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[static.InputSpec([None, 3], "float32")])
    layer = paddle.jit.load(str(tmp_path / "net"))
    data = np.random.default_rng(0).random((5, 3), "float32")
    with pytest.raises(DeviceMismatch, match="forward: operands are on virtual:0 and on cpu"):
        layer(there(data))
    layer.to("virtual")
    for x in (data, data[:2]):
        made = layer(there(x))
        assert made.place == VIRTUAL
        np.testing.assert_allclose(made.numpy(), net(paddle.to_tensor(x)).numpy(), rtol=1e-5, atol=1e-6)
    layer.train()
    layer(there(data)).sum().backward()
    update = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    update.step()
    layer.eval()
    trained = layer(there(data)).numpy()
    assert np.abs(trained - net(paddle.to_tensor(data)).numpy()).max() > 1e-2
    assert deepcopy(layer)(there(data)).tolist() == trained.tolist()
    np.testing.assert_allclose(layer.to("cpu")(paddle.to_tensor(data)).numpy(), trained, rtol=1e-5, atol=1e-6)


def test_a_saved_program_is_predicted_on_the_device(tmp_path):
    """With an open size; its figures are those of the CPU."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[static.InputSpec([None, 3], "float32")])
    predictor = Predictor(str(tmp_path / "net"), device="virtual")
    for rows in (5, 2):
        x = np.random.default_rng(rows).random((rows, 3), "float32")
        np.testing.assert_allclose(predictor.run(x)[0], net(paddle.to_tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fault", [{"die_at_launch": 25}, {"hang_at_launch": 25}], ids=["death", "hang"])
def test_a_device_that_fails_in_the_middle_of_fit_is_lost(fault, monkeypatch):
    """The loop ends with the cause, every further call at once; other devices go on."""
    monkeypatch.setitem(registry._runtimes, "chip", VirtualRuntime().faulty(**fault))
    monkeypatch.setattr(device("chip"), "watchdog", 0.5)
    data = paddle.io.TensorDataset([paddle.ones([64, 4]), paddle.ones([64], dtype="int64")])
    try:
        with paddle.device.device_guard("chip"):
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to("chip")
            model = paddle.Model(net)
            model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.CrossEntropyLoss())
            with pytest.raises(DeviceLost, match=r"died in launch 25|did not answer"):
                model.fit(data, batch_size=4, epochs=3, verbose=0)
        with pytest.raises(DeviceLost, match="cannot be used any more"):
            paddle.to_tensor([1.0], place="chip")
    finally:
        del registry._devices["chip", 0]
    assert (there([1.0]) + 1).tolist() == [2.0]


def test_a_captured_step_without_room_leaves_the_device_usable(monkeypatch):
    monkeypatch.setitem(registry._runtimes, "chip", VirtualRuntime().faulty(memory_bytes=1 << 20))
    try:
        x = paddle.ones([100, 100]).to("chip")
        step = paddle.jit.to_static(lambda x: paddle.concat([x] * 50) @ x, full_graph=True)
        with pytest.raises(DeviceOutOfMemory, match="chip:0 is out of memory"):
            step(x)
        assert float((x * 2).sum()) == 20000
    finally:
        del registry._devices["chip", 0]


@without_opencl
def test_a_kernel_that_does_not_build_is_named(monkeypatch):
    """By its operator and line, eager and captured; it is built when the compiler is whole again."""
    x, double = paddle.ones([3, 71]).to("opencl"), paddle.jit.to_static(lambda x: paddle.tanh(x) * 2, full_graph=True)
    with monkeypatch.context() as broken:
        broken.setattr(device("opencl").context, "blob", _refuse)
        broken.setattr("argosy_cinn.simt.program.default_cache", lambda: SimpleNamespace(get=lambda key: None))
        for run in (paddle.tanh, double):
            with pytest.raises(KernelBuildError, match=r"opencl:0: prim\..* of program .*test_device_training.*no log"):
                run(x)
    assert double(x).shape == paddle.tanh(x).shape == [3, 71]


def _refuse(form, source):
    raise KernelBuildError("no log")

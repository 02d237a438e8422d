"""Captured programs that span devices: `Tensor.to` and `cpu` within them, against the same function run eagerly."""

import numpy as np
import pytest

import argosy as paddle
from argosy.jit import InputSpec
from argosy_cinn import explain
from argosy_hwadapt import DeviceNotFound, device, why
from argosy_phi_ops import prim
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import DeviceMismatch
from argosy_phi_ops.ops.common.loops import scan
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

ACCELERATORS = [
    "virtual",
    pytest.param("opencl", marks=pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")),
]


class TwoParts(paddle.nn.Layer):
    """The first half on a device, the second on another."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(6, 8).to(first), paddle.nn.Linear(8, 3).to(second)
        self.places = first, second

    def forward(self, x):
        """Tanh between, and a scale that is computed on both sides."""
        half = paddle.tanh(self.first(x.to(self.places[0])))
        assert half.place == self.first.weight.place
        return self.second(half.to(self.places[1]))


def value(x):
    return x.cpu().numpy()


def trained(model, compiled):
    """Losses of steps in one program each, or eagerly, and the parameters."""
    paddle.seed(3)
    optimizer = paddle.optimizer.Momentum(0.05, parameters=model.parameters())

    def step(x):
        loss = paddle.nn.functional.dropout(model(x), 0.3).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = paddle.jit.to_static(step, full_graph=True) if compiled else step
    x = paddle.to_tensor(np.random.default_rng(1).standard_normal((4, 6)).astype("float32"))
    losses = [value(step(x)) for _ in range(4)]
    assert losses[-1] < losses[0]
    return [*losses, *map(value, model.parameters())]


@pytest.mark.parametrize(("first", "second"), [("virtual", "virtual:1"), ("cpu", "virtual")])
def test_a_step_trains_on_two_devices(first, second):
    """One program: losses and parameters are those of eager execution, and stay where they are."""
    model, twin = TwoParts(first, second), TwoParts(first, second)
    twin.set_state_dict(model.state_dict())
    for one, other in zip(trained(model, True), trained(twin, False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert [p.place for p in model.parameters()] == [p.place for p in twin.parameters()]


@pytest.mark.parametrize("there", ACCELERATORS)
def test_gradients_go_back_through_the_copies(there):
    """Also where they are asked for outside of the captured function; results are where they would be."""
    w = paddle.to_tensor(np.full((3, 3), 0.5, "float32"), place=there, stop_gradient=False)

    def f(x):
        y = paddle.exp(x.to(there) @ w)
        return y.cpu() * x, y

    compiled, x = paddle.jit.to_static(f, full_graph=True), paddle.ones([2, 3])
    x.stop_gradient = False
    for _ in range(2):
        found = []
        for run in (compiled, f):
            near, far = run(x)
            assert (near.place.is_cpu_place(), far.place) == (True, w.place)
            near.sum().backward()
            found.append([*map(value, (near, far, w.grad, x.grad))])
            assert w.grad.place == w.place
            w.clear_grad()
            x.clear_grad()
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")
def test_copies_have_a_stream_of_their_own():
    """Segments are launched on the device's; each is one for all that can run there at once."""
    seen = []

    def observe(where, method, args):
        seen.append(
            (method, next(i for i, q in enumerate(where.context.queues) if q is (args[-1] or where.context.queues[0])))
        )
        return where.perform(method, *args)

    program = Program("spans")
    x, y = (program.add_input(TensorType((2, 3), "float32")) for _ in range(2))
    with emit_at(Builder.at_end(program.block)):
        made = [prim.tanh(prim.place(v, source="cpu", target="opencl:0")) for v in (x, y)]
        back = [prim.place(prim.exp(v), source="opencl:0", target="cpu") for v in made]
        program.set_outputs([prim.add(*back)])
    executable = get_compiler("cinn").compile(program, device("cpu"))
    assert executable.report()["segments"] == {"opencl:0": 1, "cpu:0": 1}
    assert explain(executable).count("a copy from") == 4
    one = StridedArray(np.ones((2, 3), np.float32))
    run = executable.bind([])
    run([one, one])
    there = device("opencl")
    there.observer = observe
    try:
        (result,) = run([one, one])
    finally:
        there.observer = None
    np.testing.assert_allclose(result.array(), 2 * np.exp(np.tanh(one.array())), rtol=1e-6)
    streams = {kind: {stream for method, stream in seen if method == kind} for kind in ("copy", "launch")}
    assert streams["launch"] == {0}
    assert len(streams["copy"]) == 1
    assert 0 not in streams["copy"]


def test_sizes_may_be_open_and_the_reference_interpreter_spans_devices():
    def f(x):
        return (x.to("virtual") * 2 + 1).cpu() - x, x.to("virtual")

    for backend in ("CINN", None):
        run = paddle.jit.to_static(f, input_spec=[InputSpec([None, 2])], full_graph=True, backend=backend)
        for rows in (3, 5):
            near, far = run(paddle.full([rows, 2], 4.0))
            assert (near.tolist(), far.place.name) == ([[5.0, 5.0]] * rows, "virtual:0")
            assert value(far).tolist() == [[4.0, 4.0]] * rows


def test_states_are_written_after_they_were_read():
    """On either device, exchanged, and from the other one."""
    here, there = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0], place="virtual")

    def f():
        old = there + 0
        there.set_value(here.to("virtual") * 10)
        here.set_value(old.cpu() + there.cpu())
        return old

    compiled = paddle.jit.to_static(f, full_graph=True)
    assert value(compiled()).tolist() == [3.0, 4.0]
    assert (here.tolist(), value(there).tolist()) == ([13.0, 24.0], [10.0, 20.0])
    compiled()
    assert (here.tolist(), value(there).tolist()) == ([140.0, 260.0], [130.0, 240.0])


def test_operands_on_two_devices_are_named_with_the_line():
    x, y = paddle.ones([2]), paddle.ones([2])
    with pytest.raises(DeviceMismatch, match=r"prim.add at .*test_multi_device.py:\d+ in .*: operands are on .*:0 and"):
        paddle.jit.to_static(lambda a, b: a.to("virtual") + b.to("virtual:1"), full_graph=True)(x, y)
    with pytest.raises(DeviceNotFound, match="nowhere"):
        paddle.jit.to_static(lambda a: a.to("nowhere"), full_graph=True)(x)


@pytest.mark.parametrize(("first", "second"), [("cpu", "virtual"), ("virtual", "virtual:1"), *[
    pytest.param("cpu", "opencl", marks=mark.marks) for mark in ACCELERATORS[1:]
]])  # fmt: skip
def test_scans_span_devices(first, second):
    """Rows, what is carried and what is stacked on either device; gradients are scans from the last row on."""
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(shape).astype("float32") for shape in ((4, 3), (3, 3), (3,))]

    def rows(x, w, start):
        def step(carried, row):
            total, far = carried
            total = total + far.to(first) * row[0]
            far = paddle.tanh(far @ w.to(second) + row[0].to(second))
            return [total, far], [far, total * 2]

        return paddle.science.scan(step, [start, start.to(second)], [x])

    def run(x, w, start):
        (total, far), (fars, totals) = rows(x, w, start)
        return total, far, fars, totals

    compiled, found = paddle.jit.to_static(run, full_graph=True), []
    for function in (compiled, run):
        given = [paddle.to_tensor(a, place=first, stop_gradient=False) for a in data]
        made = function(*given)
        sum((part.to(first) ** 2).sum() for part in made).backward()
        found.append(([str(part.place) for part in made], [*map(value, made), *(value(x.grad) for x in given)]))
    (places, got), (others, want) = found
    assert places == others
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_a_scan_on_one_device_is_one_segment_of_it():
    """What says of constants where they are is no copy, and does not make the host run it."""
    program = Program("rows")
    x = program.add_input(TensorType((3, 2), "float32"))

    def step(rows, carried):
        threes = prim.place(prim.broadcast_to(prim.constant(3.0, "float32"), (2,)), source="cpu", target="virtual:0")
        return [], [prim.add(carried[0], prim.mul(rows[0], threes))]

    with emit_at(Builder.at_end(program.block)):
        there = prim.place(x, source="cpu", target="virtual:0")
        start = prim.place(prim.broadcast_to(prim.constant(0.0, "float32"), (2,)), source="cpu", target="virtual:0")
        program.set_outputs(scan(step, [there], [start])[1])
    executable = get_compiler("cinn").compile(program, device("cpu"))
    assert executable.report()["segments"] == {"virtual:0": 1}
    (total,) = executable.run([StridedArray(np.arange(6, dtype=np.float32).reshape(3, 2))])
    assert total.to_host().tolist() == [18.0, 27.0]


def test_branches_and_loops_span_devices():
    """A step of training in a branch, and loops whose values are on either device, within each other."""
    x = paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3))

    def turns(a, n):
        i, total = paddle.to_tensor(0), paddle.zeros([3]).to("virtual")
        while i < n:
            if i % 2 == 0:
                total = total + (a[0] + i).to("virtual")
            else:
                total = (total.to("virtual:1") * 2).to("virtual")
            i = i + 1
        for k in range(n):
            total = (total.cpu() + k).to("virtual")
        return total, a + i

    compiled = paddle.jit.to_static(turns, full_graph=True)
    for n in map(paddle.to_tensor, (0, 5)):
        for got, want in zip(compiled(x, n), turns(x, n), strict=True):
            assert (value(got).tolist(), got.place) == (value(want).tolist(), want.place)

    def losses(captured):
        paddle.seed(0)
        near, far = paddle.nn.Linear(3, 3), paddle.nn.Linear(3, 3).to("virtual")
        update = paddle.optimizer.SGD(0.1, parameters=[*near.parameters(), *far.parameters()])

        def step(a):
            h = near(a)
            if a.sum() > 0:
                loss = (far(h.to("virtual")) ** 2).mean().cpu()
            else:
                loss = (h**2).mean()
            loss.backward()
            update.step()
            update.clear_grad()
            return loss

        step = paddle.jit.to_static(step, full_graph=True) if captured else step
        return [float(step(a)) for a in (x, -x, x)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)

"""Eager execution by machine code: it is on here, computes what the plain build computes, and survives what Python does
to objects. Where the interpreter or machine has no native build, the same tests run on the plain one.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest
from eager_helpers import is_native, made_natively, tensor

import argosy as paddle
import argosy.distributed as dist
from argosy_autograd.sweep import Sweep
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager import native

ROOT = Path(__file__).parent.parent
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
}
GRADIENTS = {
    "add": lambda x, y: (np.ones_like(x), np.ones_like(y)),
    "subtract": lambda x, y: (np.ones_like(x), -np.ones_like(y)),
    "multiply": lambda x, y: (y, x),
    "divide": lambda x, y: (1 / y, -x / y**2),
}


def test_it_is_on_where_it_was_tested():
    tested = (
        sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))
        and sys.platform == "linux"
        and os.uname().machine == "x86_64"
    )
    plain = os.environ.get("ARGOSY_EAGER") == "plain" or not tested
    assert native.status().startswith("plain: " if plain else "native")


def test_a_version_that_nobody_tested_runs_plainly_with_the_same_results():
    code = (
        "import sys, argosy; from argosy_phi_ops.eager import native; from argosy_phi_ops.eager.native import loading;"
        "loading._TESTED = loading._TESTED if len(sys.argv) == 1 else ();"
        "x = argosy.linspace(0, 1, 7); x.stop_gradient = False; y = (x * x + x).tanh().sum(); y.backward();"
        "print(y.numpy().tobytes().hex(), x.grad.numpy().tobytes().hex(), native.status(), sep='|')"
    )
    known, unknown = (
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True).stdout.split(
            "|"
        )
        for more in ([], ["unknown"])
    )
    assert unknown[:2] == known[:2]
    refused = "plain: ARGOSY_EAGER" if os.environ.get("ARGOSY_EAGER") == "plain" else "plain: not tested on"
    assert unknown[2].startswith(refused)


def test_asking_before_anything_was_made_decides_nothing():
    code = (
        "import argosy; from argosy_phi_ops.eager import native; before = native.status();"
        "argosy.ones([2]) + 1; print(before, native.status(), sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"plain: nothing provides a native build|{native.status()}" or not is_native()


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (8,), (3, 5), (33,), (4096,), (40, 200), (130, 130)])
def test_values_types_and_gradients(name, dtype, shape):
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(0.5, 2, shape).astype(dtype) for _ in range(2))
    for _ in range(3):  # the first one leaves a plan
        x, y = tensor(a, True, dtype), tensor(b, True, dtype)
        z = BINARY[name](x, y)
        np.testing.assert_array_equal(z.numpy(), BINARY[name](a, b))
        assert (z.dtype, tuple(z.shape), z.stop_gradient) == (x.dtype, shape, False)
        z.sum().backward()
        for leaf, expected in zip((x, y), GRADIENTS[name](a, b), strict=True):
            np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-5)
    small = z.nbytes <= 65536
    assert made_natively(z) == (is_native() and small)


@pytest.mark.parametrize("wants", [(True, False), (False, True), (True, True), (False, False)])
def test_every_choice_of_operands_that_want_gradients(wants):
    a, b = np.arange(1, 9, dtype="f4"), np.arange(2, 10, dtype="f4")
    for _ in range(3):
        x, y = (tensor(v, w) for v, w in zip((a, b), wants, strict=True))
        z = x * y
        assert z.stop_gradient is not any(wants)
        if any(wants):
            z.sum().backward()
        for t, w, other in ((x, wants[0], b), (y, wants[1], a)):
            assert (t.grad is not None) == w
            if w:
                np.testing.assert_array_equal(t.grad.numpy(), other)


def test_other_operands_go_to_the_methods():
    x = tensor([1, 2, 3])
    for _ in range(3):
        x + x
    np.testing.assert_array_equal((x + 1).numpy(), [2, 3, 4])
    np.testing.assert_array_equal((1 - x).numpy(), [0, -1, -2])
    np.testing.assert_array_equal((np.ones(3, "f4") + x).numpy(), [2, 3, 4])
    np.testing.assert_array_equal((x + tensor([[1], [2]])).numpy(), [[2, 3, 4], [3, 4, 5]])
    np.testing.assert_array_equal((x.reshape([1, 3]).t() + x.reshape([3, 1])).numpy(), [[2], [4], [6]])
    assert (x + tensor([1, 2, 3], dtype="float64")).dtype == paddle.float64
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"

    class Odd:
        def __radd__(self, other):
            return "odd"

    assert x + Odd() == "odd"


def test_strided_operands_are_read_as_they_are():
    a = np.arange(16, dtype="f4").reshape(4, 4)
    for _ in range(3):
        x, y = tensor(a), tensor(a).t()
        np.testing.assert_array_equal((x + y).numpy(), a + a.T)
        np.testing.assert_array_equal((y * y).numpy(), a.T * a.T)


@pytest.mark.parametrize("recorded", [True, False])
def test_ordinary_tensors_stay_native_beside_distributed_ones(recorded):
    """Distributed tensors go to their layer; that there are some changes nothing for others, gradients included."""
    spread = dist.shard_tensor(tensor([1, 2, 3, 4]), dist.ProcessMesh([0]), [dist.Shard(0)])
    with paddle.set_grad_enabled(recorded):
        for _ in range(3):
            x, y = tensor([1, 2], True), tensor([3, 4])
            z = x * y
            mixed = spread + tensor([1, 1, 1, 1])
    assert made_natively(z) == is_native()
    assert z.stop_gradient is not recorded
    if recorded:
        z.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [3, 4])
    assert mixed.is_dist()
    np.testing.assert_array_equal(mixed.numpy(), [2, 3, 4, 5])


def test_modes_and_layers_are_obeyed():
    x, y = tensor([1, 2], True), tensor([3, 4])
    for _ in range(3):
        x + y
    with paddle.no_grad():
        assert (x + y).stop_gradient
    assert not (x + y).stop_gradient
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        z = x + y
    np.testing.assert_array_equal(z.astype("float32").numpy(), [4, 6])
    f = paddle.jit.to_static(lambda a, b: a + b * a, full_graph=True)
    np.testing.assert_array_equal(f(x, y).numpy(), [4, 10])
    packed = []
    with paddle.autograd.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        z = x * x
    assert packed
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_changed_operands_are_noticed():
    x, y = tensor([1, 2], True), tensor([3, 4])
    for _ in range(2):
        z = x * y
    y.add_(tensor([1, 1]))
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()
    z = x * y  # of the version that y has now
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4, 5])


def test_hooks_retained_gradients_and_higher_orders():
    x = tensor([1, 2, 3], True)
    for _ in range(3):
        z = x * x
        w = z * x
        seen = []
        z.register_hook(lambda g, seen=seen: seen.append(g.numpy()))
        z.retain_grads()
        w.sum().backward()
        np.testing.assert_array_equal(seen[0], [1, 2, 3])
        np.testing.assert_array_equal(z.grad.numpy(), [1, 2, 3])
        np.testing.assert_array_equal(x.grad.numpy(), [3, 12, 27])
        x.clear_gradient()
        (g,) = paddle.grad((x * x * x).sum(), x, create_graph=True)
        (h,) = paddle.grad(g.sum(), x)
        np.testing.assert_array_equal(h.numpy(), [6, 12, 18])


def test_memory_of_results_lives_as_long_as_what_shows_it():
    x = tensor(np.arange(8))
    for _ in range(3):
        z = x + x
        shown, view, detached = z.payload.ndarray, z[2:4], z.detach()
        del z
        others = [x * x for _ in range(50)]
        np.testing.assert_array_equal(shown, np.arange(8) * 2)
        np.testing.assert_array_equal(view.numpy(), [4, 6])
        np.testing.assert_array_equal(detached.numpy(), np.arange(8) * 2)
        del others


def test_results_are_tensors_like_others():
    x = tensor([1, 2])
    for _ in range(3):
        z = x + x
        z.note = "kept"
        z.name = "sum"
        z.persistable = True
        dead = []
        reference = weakref.ref(z, lambda _, dead=dead: dead.append(1))
        assert (reference() is z, z.note, z.is_parameter, z.grad, z.is_leaf) == (True, "kept", False, None, True)
        del z
        assert reference() is None
        assert dead == [1]
        z = x + x
        assert not hasattr(z, "note")
        assert (z.persistable, z._name, z.inplace_version) == (False, None, 0)
        z.add_(x)
        np.testing.assert_array_equal(z.numpy(), [3, 6])
        z.set_value(np.zeros(2, "f4"))
        np.testing.assert_array_equal((z + x).numpy(), [1, 2])


def test_cycles_are_collected():
    x = tensor([1, 2], True)
    x * x
    references = []
    for _ in range(20):
        z = x * x
        z.self = z
        z.grad = z
        references.append(weakref.ref(z))
        del z
    gc.collect()
    assert not any(r() for r in references)


def test_reference_counts_balance():
    x, y = tensor(np.arange(8), True), tensor(np.arange(8))
    kind = x.payload.array_type

    def work():
        for _ in range(300):
            z = x * y + y - x
        z.sum().backward()
        x.clear_gradient(False)

    for _ in range(10):  # free lists fill up, and what is hot is compiled
        work()
    watched = (kind, kind.shape, kind.dtype, paddle.Tensor, type(x.payload), x, y, None, True, False)
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(5):
        work()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    assert all(abs(b - a) < 250 for a, b in zip(before, after, strict=True)), (before, after)


def test_deep_graphs_are_freed_and_gone_back_through():
    x, y = tensor([1.0], True), tensor([1.0])
    z = x
    for _ in range(200_000):
        z = z + y
    del z
    z = x
    for _ in range(20_000):
        z = z + y
    z.backward()
    assert x.grad.item() == 1


def test_graphs_of_native_and_other_nodes():
    """Nodes that native code goes back through, ones that Python does, ones with several results and ones of users."""

    class Twice(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x, y = tensor([1, 2, 3, 4], True), tensor([1, 1, 1, 1], True)
    for _ in range(3):
        a = x + y
        first, second = paddle.split(a + a, 2)
        z = Twice.apply(first) * second + first + (a * y)[:2]
        (z.sum() + (y + x).sum()).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [36, 44, 17, 25])
        np.testing.assert_array_equal(y.grad.numpy(), [38, 47, 17, 25])
        x.clear_gradient()
        y.clear_gradient()


def test_nodes_with_several_results_go_back_natively(monkeypatch):
    """Split, with a part that nobody uses, one used twice, hooks, retained gradients and an error on the way."""
    natively, left = Sweep._run_natively, []

    def noted(self, start):
        natively(self, start)
        left.append(len(self.heap))

    monkeypatch.setattr(Sweep, "_run_natively", noted)
    x, y = tensor(np.arange(1, 7), True), tensor(np.arange(6), True)
    for _ in range(3):
        first, second, _ = paddle.split(x * y, 3)
        seen = []
        first.register_hook(lambda g, seen=seen: seen.append(g.numpy()))
        second.retain_grads()
        third, fourth = paddle.split(paddle.concat([second * first, first, second]), 2)
        z = (third * fourth).sum()
        z.backward(retain_graph=True)
        a, b, c, d = 0.0, 2.0, 6.0, 12.0
        joined = [a * c, b * d, a, b, c, d]
        ends = [*joined[3:], *joined[:3]]
        gradient = np.array(
            [ends[0] * c + ends[2], ends[1] * d + ends[3], ends[0] * a + ends[4], ends[1] * b + ends[5], 0, 0]
        )
        np.testing.assert_array_equal(x.grad.numpy(), gradient * np.arange(6))
        np.testing.assert_array_equal(y.grad.numpy(), gradient * np.arange(1, 7))
        np.testing.assert_array_equal(seen[0], gradient[:2])
        np.testing.assert_array_equal(second.grad.numpy(), gradient[2:4])

        def refuse(g):
            raise RuntimeError("refused")

        handle = first.register_hook(refuse)
        before = x.grad.numpy().copy()
        with pytest.raises(RuntimeError, match="refused"):
            z.backward(retain_graph=True)
        assert handle.remove()
        np.testing.assert_array_equal(x.grad.numpy(), before)
        z.backward()
        np.testing.assert_array_equal(x.grad.numpy(), 2 * before)
        with pytest.raises(RuntimeError, match="a second time"):
            z.backward()
        x.grad = y.grad = None
    assert not is_native() or not any(left)


def test_a_pass_within_a_pass():
    x = tensor([1, 2], True)
    w = tensor([3, 4], True)
    for _ in range(2):
        z = x + x
        inner = w + w

        def hook(g, inner=inner):
            inner.backward()

        z.register_hook(hook)
        ((z + z) + x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [5, 5])
        np.testing.assert_array_equal(w.grad.numpy(), [2, 2])
        x.clear_gradient()
        w.clear_gradient()


def test_an_error_on_the_way_back_leaves_nothing_behind():
    x = tensor([1, 2], True)

    def refuse(g):
        raise RuntimeError("refused")

    for _ in range(3):
        a = x + x
        b = a + x
        handle = a.register_hook(refuse)
        z = (b + a) + (b + x)
        with pytest.raises(RuntimeError, match="refused"):
            z.sum().backward(retain_graph=True)
        assert handle.remove()
        assert x.grad is None
        z.sum().backward(retain_graph=True)
        np.testing.assert_array_equal(x.grad.numpy(), [9, 9])
        z.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [18, 18])
        with pytest.raises(RuntimeError, match="a second time"):
            z.sum().backward()
        x.grad = None


def test_collections_at_any_moment():
    thresholds = gc.get_threshold()
    x, y = tensor(np.arange(8), True), tensor(np.ones(8))
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(200):
            z = (x * y + y) / y
            z.note = z
        z.sum().backward()
    finally:
        gc.set_threshold(*thresholds)
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(8))


def test_traced_memory():
    x = tensor(np.arange(8), True)
    tracemalloc.start()
    try:
        for _ in range(2000):
            z = x * x + x
    finally:
        tracemalloc.stop()
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(8) + 1)


def test_six_threads():
    wrong = []
    interval = sys.getswitchinterval()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = rng.random((2, 8)).astype("f4")
        x, y = tensor(a), tensor(b, True)
        for i in range(600):
            z = (x * y + x) / x
            many = [z + y for _ in range(3)]
            if i % 50 == 0:
                many[0].note = many
                if not np.allclose(z.numpy(), (a * b + a) / a, rtol=1e-5):
                    wrong.append(seed)
                gc.collect(0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_forgetting_plans_changes_nothing():
    x = tensor([1.5, 2], True)
    for default in ("float64", "float32"):
        for _ in range(3):
            z = x * x
        paddle.set_default_dtype(default)
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])
    np.testing.assert_array_equal(z.numpy(), [2.25, 4])


def test_an_application_that_leaves_its_table_takes_its_plans_out():
    """It has one plan for each way to write a call; its calls are done anew, by an application that comes to have its
    own."""
    x = tensor([1.0, 2.0, 4.0, 8.0, 16.0])
    x + x
    table = get_operator("add").applications
    table.clear()
    if not is_native():
        pytest.skip("no native build here")
    before, table.limit = table.limit, 4
    try:
        for _ in range(3):
            x + x
            paddle.add(x, y=x)
        key = (x.payload.array_type,) * 2, ()
        application = table.by_key[key]
        assert len({plan.words.tobytes() for plan in application.plans}) == len(application.plans) == 2
        assert made_natively(x + x)
        tensor([1.0] * 6) + tensor([1.0] * 6)
        assert application not in table.applications()
        assert application.plans is None
        for _ in range(2):
            z = x + x
        assert table.by_key[key] is not application
        assert made_natively(z)
        np.testing.assert_array_equal(z.numpy(), [2, 4, 8, 16, 32])
    finally:
        table.limit = before


OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.1, parameters=p),
    "momentum": lambda p: paddle.optimizer.Momentum(0.1, parameters=p, weight_decay=0.02),
    "nesterov": lambda p: paddle.optimizer.Momentum(0.1, parameters=p, use_nesterov=True, rescale_grad=0.3),
    "adam": lambda p: paddle.optimizer.Adam(0.01, parameters=p, weight_decay=0.02),
    "adamw": lambda p: paddle.optimizer.AdamW(0.01, parameters=p, weight_decay=0.1),
    "some": lambda p: paddle.optimizer.AdamW(
        0.01, parameters=p, apply_decay_param_fun=lambda name: name.startswith("w")
    ),
    "amsgrad": lambda p: paddle.optimizer.Adam(0.01, parameters=p, amsgrad=True),
}


def _trained(make, dtype: str, at_once: bool, monkeypatch) -> list[np.ndarray]:
    """Parameters after three steps, and how often the first one was written."""
    rng = np.random.default_rng(5)
    shapes = {"w": (37, 11), "b": (11,), "s": ()}
    parameters = [tensor(rng.standard_normal(shape), True, dtype) for shape in shapes.values()]
    for p, name in zip(parameters, shapes, strict=True):
        p.name = f"{name}_{at_once}_{dtype}"
    optimizer = make(parameters)
    if not at_once:
        monkeypatch.setattr(type(optimizer), "_native_pass", lambda _: None)
    for _ in range(3):
        for p in parameters:
            p.grad = tensor(rng.standard_normal(p.shape), False, dtype)
        optimizer.step()
    monkeypatch.undo()
    return [*(p.numpy() for p in parameters), np.array(parameters[0].inplace_version)]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_updates_at_once_give_the_same_bits(name, dtype, monkeypatch):
    for x, y in zip(*[_trained(OPTIMIZERS[name], dtype, w, monkeypatch) for w in (True, False)], strict=True):
        np.testing.assert_array_equal(x, y)


def test_rules_of_users_are_followed():
    class Backwards(paddle.optimizer.SGD):
        def _update(self, parameter, value, grad, rate, shared):
            return value + rate * grad

    x = tensor([1.0, 2.0], True)
    x.grad = tensor([2.0, 2.0])
    Backwards(0.5, parameters=[x]).step()
    np.testing.assert_array_equal(x.numpy(), [2, 3])


def test_updates_at_once_are_done_where_they_can_be():
    before = native.update("sgd", (tensor([1.0]), tensor([1.0])), (0.5,), (0,))
    assert not before  # gradients are recorded
    x, g = tensor([1.0, 2.0]), tensor([2.0, 2.0])
    with paddle.no_grad():
        assert native.update("sgd", (x, g), (0.5,), (0,)) == is_native()
        assert not native.update("sgd", (x, tensor([1.0])), (0.5,), (0,))
        assert not native.update("nothing", (x, g), (0.5,), (0,))
        assert not native.update("sgd", (x.t(), tensor([[1.0, 2.0]])), (0.5,), (0,))
    if is_native():
        np.testing.assert_array_equal(x.numpy(), [0, 1])
        assert x.inplace_version == 1


HERE = "tests/test_native_eager.py"
CALLS_TOO = "tests/test_native_calls.py"
CORE = ("packages/autograd/tests/test_tape.py", "packages/phi-ops/tests/test_routes.py")
RUN = """
import sys, argosy.runtime, hypothesis, pytest
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
sys.exit(pytest.main(sys.argv[1:]))
"""
FLAGS = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@pytest.mark.skipif("ARGOSY_EAGER_NESTED" in os.environ, reason="it runs this file")
@pytest.mark.parametrize(
    ("options", "setting", "files"),
    [
        ([], "", CORE),
        ([], "plain", (HERE, CALLS_TOO)),
        (["-X", "dev"], "", (HERE, CALLS_TOO)),
    ],
    ids=["core-native", "plain", "dev"],
)
def test_the_same_tests_under_both_builds(options, setting, files):
    quick = {"ARGOSY_CODEGEN_LEVEL": "0"}
    environment = {**quick, **os.environ, "ARGOSY_EAGER": setting, "ARGOSY_EAGER_NESTED": "1"}
    command = [sys.executable, *options, "-c", RUN, *FLAGS, *files]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_it_starts_after_many_tensors_were_made() -> None:
    """Python has no room in line for new attributes of a class of many instances: nothing depends on that."""
    script = (
        "import argosy as paddle\n"
        "many = [paddle.to_tensor([1.0]) for _ in range(100)]\n"
        "print(sum(float(x + x) for x in many))\n"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("200.0\n", "")


NUMBERS = [2.0, -0.5, 0.1, 3, -7, 0, -0.0, float("inf"), float("nan"), (1 << 30) + 1, 1 << 70, True]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_beside_tensors(name, dtype):
    a = np.random.default_rng(4).uniform(0.5, 2, 11).astype(dtype)
    with np.errstate(all="ignore"):
        for number in NUMBERS:
            for f in (lambda x, n=number: BINARY[name](x, n), lambda x, n=number: BINARY[name](n, x)):
                for _ in range(3):
                    z = f(tensor(a, dtype=dtype))
                    np.testing.assert_array_equal(z.numpy(), f(a) if number != 1 << 70 else f(a * 1.0))
                    assert (z.dtype, tuple(z.shape)) == (tensor(a, dtype=dtype).dtype, (11,))
        products = [tensor(a, dtype=dtype) * 2.5 for _ in range(3)]  # what comes again is learnt
        assert made_natively(products[-1]) == is_native()
        assert (tensor([1, 2], dtype="int64") * 2).dtype == paddle.int64
        assert (tensor([1, 2], dtype="int64") / 2).dtype == paddle.float32


@pytest.mark.parametrize("name", BINARY)
def test_gradients_beside_numbers(name):
    a = np.arange(1, 6, dtype="f4")
    for number in (2.0, 3):
        for _ in range(3):
            x, y = tensor(a, True), tensor(a, True)
            (BINARY[name](x, number).sum() + BINARY[name](number, y).sum()).backward()
            other = np.full_like(a, number)
            np.testing.assert_allclose(x.grad.numpy(), GRADIENTS[name](a, other)[0], rtol=1e-6)
            np.testing.assert_allclose(y.grad.numpy(), GRADIENTS[name](other, a)[1], rtol=1e-6)


def test_nothing_is_recorded_where_gradients_are_off():
    for name in ("multiply", "add"):
        get_operator(name).applications.clear()  # a full table would drop an application here, perhaps this one
    x, y = tensor([1, 2], True), tensor([3, 4], True)
    for _ in range(3):
        x * y
        x * 2.0
        x + y
    with paddle.no_grad():
        for z in (x * y, x * 2.0, x + y):
            assert z.stop_gradient
            assert z._node is None
            assert made_natively(z) == is_native()
        with paddle.enable_grad():
            assert not (x * y).stop_gradient
        assert (x * y).stop_gradient
    assert not (x * y).stop_gradient
    (x * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])


def test_each_thread_has_its_own_mode():
    x, y = tensor([1, 2], True), tensor([3, 4])
    for _ in range(3):
        x * y
    inside, outside, seen = threading.Event(), threading.Event(), []

    def silent():
        with paddle.no_grad():
            inside.set()
            outside.wait(3600)
            seen.append((x * y).stop_gradient)

    thread = threading.Thread(target=silent)
    thread.start()
    inside.wait(3600)
    recorded = not (x * y).stop_gradient  # the other thread records nothing now; this one does
    with paddle.no_grad():
        both = (x * y).stop_gradient
    again = not (x * y).stop_gradient
    outside.set()
    thread.join()
    assert (recorded, both, again, seen) == (True, True, True, [True])
    assert not (x * y).stop_gradient


CALLS = {
    "relu": (lambda x: paddle.nn.functional.relu(x), lambda a: np.maximum(a, 0)),
    "exp": (lambda x: x.exp(), np.exp),
    "negative": (lambda x: -x, np.negative),
    "sum": (lambda x: x.sum(), np.sum),
    "mean": (lambda x: paddle.mean(x), np.mean),
    "matmul": (lambda x: x @ x, lambda a: a @ a),
    "row": (lambda x: x * tensor(np.arange(4)), lambda a: a * np.arange(4, dtype="f4")),
    "maximum": (lambda x: paddle.maximum(x, tensor([0.5])), lambda a: np.maximum(a, np.float32(0.5))),
    "less": (lambda x: x < tensor(np.zeros((4, 4))), lambda a: a < 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_hot_calls_are_native(name, hot_at_once):
    f, expected = CALLS[name]
    a = np.random.default_rng(1).standard_normal((4, 4)).astype("f4")
    for i in range(9):
        x = tensor(a)
        y = f(x)
        assert made_natively(y) == (is_native() and i > 4) or 1 <= i <= 4
        np.testing.assert_allclose(y.numpy(), expected(a), rtol=1e-5, atol=1e-6)
        assert tuple(y.shape) == expected(a).shape
        assert y.dtype == (paddle.bool if name == "less" else paddle.float32)
    assert y.stop_gradient
    x = tensor(a.T.copy()).t()  # strided: by Python
    np.testing.assert_allclose(f(x).numpy(), expected(a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "less"])
def test_gradients_of_hot_calls(name, hot_at_once):
    f, _ = CALLS[name]
    a = np.random.default_rng(2).uniform(0.1, 0.4, (4, 4)).astype("f4")
    found = []
    for _ in range(9):
        x = tensor(a, True)
        y = f(x)
        assert not y.stop_gradient
        (y * y).sum().backward()
        found.append(x.grad.numpy())
    for g in found[1:]:
        np.testing.assert_allclose(g, found[0], rtol=1e-4, atol=1e-6)
    x = tensor(a, True)
    (g,) = paddle.grad(f(x).sum(), x, create_graph=True)
    assert tuple(g.shape) == (4, 4)
    y = f(x)
    hooked = []
    y.register_hook(lambda g: hooked.append(g.shape))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert len(hooked) == 2


def test_hot_calls_obey_modes_and_notice_changes(hot_at_once):
    relu = paddle.nn.functional.relu
    x = tensor([[1, -2]], True)
    for _ in range(8):
        y = relu(x)
    with paddle.no_grad():
        assert relu(x).stop_gradient
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        z = relu(x)
    assert z.dtype in (paddle.bfloat16, paddle.float32)
    packed = []
    with paddle.autograd.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        relu(x)
    assert packed
    u = x * 1.0
    y = relu(u)
    u.add_(u.detach())
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()
    with pytest.raises((TypeError, ValueError)):
        relu("a")
    with pytest.raises(TypeError):
        relu(x, x, x, x)
    np.testing.assert_array_equal(relu(x=x).numpy(), [[1, 0]])


def test_reference_counts_of_hot_calls_balance(hot_at_once):
    x = tensor(np.arange(16).reshape(4, 4), True)
    relu = paddle.nn.functional.relu

    def work():
        for _ in range(300):
            z = relu(x * 0.5) + 1
            z = z.exp() @ x
        z.sum().backward()
        x.clear_gradient(False)
        with paddle.no_grad():
            for _ in range(300):
                relu(x * 0.5)

    for _ in range(3):  # free lists fill up
        work()
    watched = (x.payload.array_type, x.payload.dtype, paddle.Tensor, x, None, True, False, float, int, 0, 1, relu)
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(5):
        work()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    assert all(abs(b - a) < 250 for a, b in zip(before, after, strict=True)), (before, after)


def test_deep_graphs_of_all_shapes_are_freed():
    """Histories on the left, on the right, on both sides, of operators with one operand and with several results."""
    x, y = tensor([1.0, 2.0], True), tensor([1.0, 1.0])
    for way in (lambda z: z + y, lambda z: y + z, lambda z: z * x, lambda z: x - z, lambda z: z * 0.5, lambda z: z + z):
        z = x
        for _ in range(60_000):
            z = way(z)
        kept = weakref.ref(z._node)
        del z
        assert kept() is None
    z = x
    for i in range(3_000):
        z = paddle.concat(paddle.split(z + y, 2)) if i % 10 == 0 else y + z
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_histories_that_python_looks_at():
    x, y = tensor([1, 2], True), tensor([3, 4], True)
    for _ in range(3):
        z = (x + y) * x
        node = z._node
        assert [len(edge) for edge in node.edges] == [2, 2]
        assert node.edges[1] == (x, 0)
        assert [edge[0] for edge in node.edges[0][0].edges] == [x, y]
        z.sum().backward()
        assert node.edges is None
        with pytest.raises(AttributeError):
            node.nothing  # noqa: B018
        u = x * 2.0
        assert list(u._node.edges) == [(x, 0), None]
    _, second = paddle.split(x * 1.0, 2)
    for _ in range(3):
        z = second + second
    assert [edge[1] for edge in z._node.edges] == [1, 1]
    z.backward()
    assert x.grad.numpy()[1] > 0

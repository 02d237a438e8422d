"""Applications that turn out to be hot are compiled: they compute what they did, refuse what they did, and what
compiling gains nothing for stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops import get_operator
from argosy_phi_ops.eager import table, tiering
from argosy_phi_ops.eager.tiering import TieredKernel
from argosy_phi_ops.errors import OperatorError
from argosy_pir import TensorType
from argosy_tensorcore.dtype import default_listeners

ROOT = Path(__file__).parent.parent
F = paddle.nn.functional
rng = np.random.default_rng(5)


def some(*shape: int) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(np.float32)


LABELS = paddle.to_tensor(np.array([[1, 2], [3, 3]], np.int32))
INDICES = np.array([[0, 3, 1], [2, 2, 0]])
CASES = {
    "gelu": (lambda x: F.gelu(x), [some(4, 33)]),
    "softmax": (lambda x: F.softmax(x, axis=0), [some(4, 5)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 8, w, b), [some(3, 4, 8), some(8), some(8)]),
    "linear": (lambda x, w, b: F.linear(x, w, b), [some(3, 4, 8), some(8, 5), some(5)]),
    "matmul": (lambda x, y: paddle.matmul(x, y, transpose_y=True), [some(2, 3, 4), some(2, 5, 4)]),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [some(2, 5, 2, 4) for _ in range(3)],
    ),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), [some(2, 3, 6, 6), some(4, 3, 3, 3)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, paddle.to_tensor([1, 0, 3])), [some(3, 4)]),
    "embedding": (lambda w: F.embedding(paddle.to_tensor(INDICES), w), [some(4, 6)]),
    "logsumexp": (lambda x: paddle.logsumexp(x, axis=-1), [some(3, 7)]),
    "silu": (lambda x: F.silu(x), [some(5)]),
    "std": (lambda x: paddle.std(x), [some(5, 6)]),
    "ctc_loss": (lambda x: F.ctc_loss(x, LABELS, paddle.to_tensor([6, 5]), paddle.to_tensor([2, 1])), [some(6, 2, 4)]),
}


@pytest.fixture
def compiled(monkeypatch):
    """Programs compiled within a test; whatever is called often enough is hot."""
    if tiering.native_kernel.__module__ != tiering.__name__:
        pytest.fail("native_kernel was replaced")
    names: list[str] = []
    made = tiering.native_kernel

    def native_kernel(program):
        names.append(program.name)
        return made(program)

    monkeypatch.setattr(tiering, "BUDGET", 1)
    monkeypatch.setattr(tiering, "native_kernel", native_kernel)
    for forget in default_listeners:
        forget()
    if os.environ.get("ARGOSY_EAGER") == "plain":
        pytest.skip("everything is left to numpy")
    table.forget()
    yield names
    table.forget()


def value_and_gradients(f, arrays):
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    y = f(*tensors)
    weights = np.linspace(-1, 2, int(np.prod(y.shape)) or 1, dtype=np.float32).reshape(y.shape)
    y.backward(paddle.to_tensor(weights))
    return [y.numpy(), *[t.grad.numpy() for t in tensors]]


@pytest.mark.parametrize("name", CASES)
def test_hot_ones_compute_what_they_did(name, compiled, monkeypatch):
    f, arrays = CASES[name]
    monkeypatch.setenv("ARGOSY_EAGER", "plain")
    by_numpy = value_and_gradients(f, arrays)
    assert not compiled
    monkeypatch.delenv("ARGOSY_EAGER")
    for forget in default_listeners:
        forget()
    first = value_and_gradients(f, arrays)
    for _ in range(5):
        again = value_and_gradients(f, arrays)
    assert any(each.endswith("_grad") for each in compiled)
    assert name == "embedding" or any(not each.endswith("_grad") for each in compiled)
    for a, b, c in zip(by_numpy, first, again, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        assert b.tobytes() == c.tobytes()


def test_strided_operands_and_results_of_their_own(compiled):
    a = some(6, 8)
    x = paddle.to_tensor(a).t()
    for _ in range(6):
        y = F.softmax(x)
    assert compiled == ["softmax"]
    y.add_(paddle.ones_like(y))  # the memory is its own
    np.testing.assert_allclose(F.softmax(x).numpy() + 1, y.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(x.numpy(), a.T)


def test_the_moment_depends_on_shapes_and_calls_alone(compiled, monkeypatch):
    monkeypatch.setattr(tiering, "BUDGET", 10_000_000)
    moments = []
    for _ in range(2):
        table.forget()
        before, calls = len(compiled), 0
        x = paddle.to_tensor(some(64, 256))
        while len(compiled) == before:
            F.hardswish(x)
            calls += 1
        moments.append(calls)
    assert moments[0] == moments[1] > 8


def test_inexact_programs_are_native_from_the_first_call_or_never(compiled, monkeypatch):
    """Sizes that change with every call are not compiled each time, and what was decided stays."""
    monkeypatch.setattr(tiering, "BUDGET", 10_000_000)
    monkeypatch.setattr(tiering, "SHAPES", 2)
    monkeypatch.setattr(tiering, "_shapes", {})
    inputs = [paddle.to_tensor(some(3, n)) for n in (5, 6, 7, 8)]
    values = [F.softmax(x).numpy() for x in inputs]
    assert compiled == ["softmax"] * 2
    for _ in range(40):
        for x, value in zip(inputs, values, strict=True):
            assert F.softmax(x).numpy().tobytes() == value.tobytes()
    assert compiled == ["softmax"] * 2
    table.forget()
    for x, value in zip(reversed(inputs), reversed(values), strict=True):
        assert F.softmax(x).numpy().tobytes() == value.tobytes()


def test_large_products_count_the_threads_they_wake():
    """Those of numpy's library keep the cores from kernels that follow; products of small matrices wake none."""

    def cost(*shape):
        types = [TensorType(shape, "float32"), TensorType((*shape[:-2], 64, 8), "float32")]
        return tiering._cost(get_operator("matmul").expand(types, {"transpose_x": False, "transpose_y": False}).program)

    assert cost(1024, 64) > cost(16, 64, 64) + 50_000


def test_what_gains_nothing_stays(compiled):
    """Where native code does not make the results itself, as it does small ones."""
    x, y = paddle.to_tensor(some(130, 130), stop_gradient=False), paddle.to_tensor(some(130, 130))
    for _ in range(6):
        x.grad = None
        (paddle.add(x, y).reshape([16900]).t().reshape([65, 260]) * 2.0).sum().backward()
        paddle.concat([x, y])
        paddle.abs(x)
        paddle.svd(y)
    assert compiled == []


@pytest.mark.parametrize("wants", [False, True])
def test_numbers_that_come_again_are_constants_of_large_applications_too(wants, compiled):
    a, ones = some(80, 81), np.ones((80, 81), np.float32)
    for i in range(24):
        x = paddle.to_tensor(a, stop_gradient=not wants)
        low = [-0.25, 0.0, -0.0][i % 3]
        y, power = paddle.clip(x, low, 0.5), x**2
        z = paddle.lerp(x, paddle.to_tensor(ones), 0.25)
        np.testing.assert_array_equal(y.numpy(), np.clip(a, np.float32(low), np.float32(0.5)))
        np.testing.assert_allclose(power.numpy(), a * a, rtol=1e-6)
        np.testing.assert_allclose(z.numpy(), a + (1 - a) * 0.25, rtol=1e-6, atol=1e-7)
        if wants:
            (y + power).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), ((a >= low) & (a <= 0.5)) + 2 * a, rtol=1e-6, atol=1e-6)
    assert compiled.count("clip") == 3  # zeros differ by sign
    for _ in range(5):
        with pytest.raises(OperatorError, match="min"):
            paddle.clip(x, 1.0, 0.5)
    assert {"pow", "lerp"} <= set(compiled)


def test_ranges_that_are_not_finite_are_refused_as_before(compiled):
    for _ in range(8):
        x = paddle.to_tensor([0.5, 1.5, 2.5, 1.0])
        assert paddle.histogram(x, 2).tolist() == [2, 2]
        with pytest.raises(OperatorError, match="finite"):
            paddle.histogram(paddle.to_tensor([0.5, float("nan"), 2.5, 1.0]), 2)
    assert "histogram" in compiled


def test_numbers_that_keep_changing_are_left_to_numpy(compiled):
    a = some(80, 81)
    x = paddle.to_tensor(a)
    for i in range(40):
        np.testing.assert_allclose((x ** (i / 8)).numpy()[a > 0], a[a > 0] ** np.float32(i / 8), rtol=1e-5)
    assert "pow" not in compiled


def test_indices_are_checked_as_before(compiled):
    w = paddle.to_tensor(some(4, 6), stop_gradient=False)
    for _ in range(6):
        F.embedding(paddle.to_tensor(INDICES), w).sum().backward()
    with pytest.raises((ValueError, IndexError)):
        F.embedding(paddle.to_tensor(INDICES + 9), w)


def test_the_tape_checks_and_differentiates_as_before(compiled):
    a = some(5)
    x = paddle.to_tensor(a, stop_gradient=False)
    for _ in range(6):
        y = F.silu(x)
        (g,) = paddle.grad(y.sum(), x, create_graph=True)
        (h,) = paddle.grad(g.sum(), x)
        F.silu(x).sum().backward()
    s = 1 / (1 + np.exp(-a.astype("f8")))
    np.testing.assert_allclose(h.numpy(), s * (1 - s) * (2 + a * (1 - 2 * s)), rtol=1e-4, atol=1e-6)
    assert "silu_grad" in compiled
    z = x.detach().clone()
    z.stop_gradient = False
    u = z * 1.0
    w = F.silu(u)
    u.add_(u.detach())
    with pytest.raises(RuntimeError, match="changed in place"):
        w.sum().backward()
    w = F.silu(x)
    w.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        w.sum().backward()


def test_the_estimate_of_a_product():
    """A multiplication and an addition of each pair of rows and columns: it grows with what is shared, too. Neither
    wakes threads."""
    types = [[(32, 32), (32, 16)], [(32, 320), (320, 16)]]
    costs = []
    for shapes in types:
        x, y = (paddle.to_tensor(some(*shape)) for shape in shapes)
        paddle.matmul(x, y)
        found = get_operator("matmul").applications.applications()
        (application,) = [a for a in found if [t.shape for t in a.types] == shapes]
        costs.append(tiering._cost(application.program()))
    assert 5 * (costs[0] - 1000) < costs[1] - 1000 < 11 * (costs[0] - 1000)


def test_the_estimate_of_a_convolution():
    """numpy lays out all windows: a larger kernel over the same elements costs more, more groups cost less."""
    costs = []
    for size, groups in ((1, 1), (5, 1), (5, 8)):
        x, w = paddle.to_tensor(some(2, 8, 16, 16)), paddle.to_tensor(some(8, 8 // groups, size, size))
        paddle.nn.functional.conv2d(x, w, padding=size // 2, groups=groups)
        shapes = [t.shape for t in (x.payload, w.payload)]
        found = get_operator("conv2d").applications.applications()
        (application,) = [a for a in found if [t.shape for t in a.types[:2]] == shapes]
        costs.append(tiering._cost(application.program()))
    assert costs[1] > 3 * costs[0]
    assert costs[0] < costs[2] < costs[1]


def test_plain_means_numpy():
    code = (
        "import os, argosy as paddle\n"
        "from argosy_phi_ops.eager import tiering\n"
        "tiering.BUDGET = 1\n"
        "x = paddle.ones([3, 4])\n"
        "for _ in range(8): paddle.nn.functional.softmax(x)\n"
        "import sys; print('argosy_cinn.compiler' in sys.modules)\n"
    )
    for eager, expected in (("plain", "False"), ("", "True")):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "ARGOSY_EAGER": eager}, cwd=ROOT, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == expected


def test_threads_that_count_together(compiled):
    a, results = some(16, 16), []

    def work():
        x = paddle.to_tensor(a, stop_gradient=False)
        for _ in range(40):
            F.silu(F.softmax(x)).sum().backward()
        results.append(x.grad.numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"softmax", "silu", "softmax_grad", "silu_grad"} <= set(compiled)
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("error", [NotImplementedError, OperatorError])
def test_what_has_no_program_stays(error):
    def program():
        raise error("no decomposition")

    installed = []
    counted = tiering.TieredKernel(lambda x: x + 1, program, lambda native: native, installed.append)
    assert [counted(i) for i in range(8)] == list(range(1, 9))
    assert len(installed) == 1


RANDOM = {
    "rand": lambda: paddle.rand([64, 50]),
    "randn": lambda: paddle.randn([64, 50]),
    "randn in float64": lambda: paddle.randn([64, 50], "float64"),
    "gaussian": lambda: paddle.tensor.random.gaussian([64, 50], 1.0, 2.0),
    "bernoulli": lambda: paddle.bernoulli(paddle.full([64, 50], 0.3)),
    "dropout": lambda: paddle.nn.functional.dropout(paddle.ones([64, 50]), 0.3),
    "randperm": lambda: paddle.randperm(99),
}


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_hot_random_operators_draw_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled or not, a draw is a function of seed and counter; the calls that a kernel waits for change nothing."""
    draw = RANDOM[name]

    def drawn() -> list[np.ndarray]:
        paddle.seed(11)
        return [draw().numpy() for _ in range(90)]

    table.forget()
    compiled = drawn()
    assert len({a.tobytes() for a in compiled}) == len(compiled)
    table.forget()
    monkeypatch.setenv("ARGOSY_EAGER", "plain")
    for a, b in zip(compiled, drawn(), strict=True):
        np.testing.assert_array_equal(a, b)
    table.forget()


def test_hot_random_operators_are_native_and_follow_the_default_dtype() -> None:
    table.forget()
    for _ in range(90):
        paddle.rand([64, 50])
    kernels = [each.kernel for each in get_operator("rand").applications.applications()]
    assert [type(kernel) is TieredKernel for kernel in kernels] == [False]
    paddle.set_default_dtype("float64")
    try:
        assert paddle.rand([64, 50]).dtype == paddle.float64
    finally:
        paddle.set_default_dtype("float32")
    assert paddle.rand([64, 50]).dtype == paddle.float32


def test_recurrent_layers_become_native_loops(compiled, monkeypatch):
    """The loop over the steps is compiled with what is around it, and the loop of its derivative."""
    monkeypatch.setattr(tiering, "BUDGET", 1)
    layer, x = paddle.nn.LSTM(3, 4), paddle.to_tensor(some(2, 5, 3))
    seen = []
    for _ in range(12):
        out, _ = layer(x)
        out.pow(2).sum().backward()
        seen.append([out.numpy(), *(p.grad.numpy() for p in layer.parameters())])
        layer.clear_gradients()
    for first, last in zip(seen[0], seen[-1], strict=True):
        np.testing.assert_allclose(last, first, rtol=1e-5, atol=1e-6)
    assert any("lstm" in name for name in compiled)


@pytest.mark.parametrize("wants", [False, True])
def test_results_that_are_operands_as_they_are_keep_nothing_from_being_compiled(compiled, wants):
    """BatchNorm by its running statistics gives them back: copies, as other results are."""
    from argosy_phi_ops.declare.operator import get_operator

    rng = np.random.default_rng(5)
    a, mean, variance = rng.standard_normal((6, 3)), rng.standard_normal(3), rng.uniform(0.5, 2, 3)
    statistics = [paddle.to_tensor(s.astype("float32")) for s in (mean, variance)]
    for _ in range(12):
        x = paddle.to_tensor(a.astype("float32"), stop_gradient=not wants)
        y, *kept = get_operator("batch_norm")(x, *statistics)
        np.testing.assert_allclose(y.numpy(), (a - mean) / np.sqrt(variance + 1e-5), rtol=2e-5)
        for given, same in zip(statistics, kept, strict=True):
            np.testing.assert_array_equal(same.numpy(), given.numpy())
            same.zero_()  # its memory is its own
            assert given.numpy().all()
        if wants:
            y.sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), np.tile(1 / np.sqrt(variance + 1e-5), (6, 1)), rtol=2e-5)
    assert compiled.count("batch_norm") == 1

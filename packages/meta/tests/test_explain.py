"""``argosy.explain``: stages, kernels and memory of a function, as text and HTML; nothing it looks at changes."""

import numpy as np
import pytest

import argosy as paddle


def model():
    paddle.seed(3)
    return paddle.nn.Sequential(paddle.nn.Linear(16, 32), paddle.nn.GELU(), paddle.nn.Linear(32, 4))


def test_a_training_step_is_explained_and_its_parameters_stay():
    net = model()
    optimizer = paddle.optimizer.AdamW(learning_rate=0.1, parameters=net.parameters())

    def step(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    x = paddle.ones([8, 16])
    before = [p.numpy().copy() for p in net.parameters()]
    report = paddle.explain(step, x, repeats=2)
    assert all((p.numpy() == b).all() for p, b in zip(net.parameters(), before, strict=True))
    ours, compilers = "decompose,taylor-mode,expand-gradients,cse,dce", "decompose,number-index-checks,inline,"
    assert report["passes"].startswith(f"{ours},{compilers}")
    assert "phi.gelu" in report["captured program"]
    assert "ad.gradient" in report["captured program"]
    assert "ad.gradient" not in report["decomposed program"]
    assert "product_8x32x16" in report["kernels"]
    assert "test_explain.py:" in report["kernels"]
    assert "of limit" in report["kernels"]
    assert "peak" in report["memory"]


def test_layers_and_captured_functions_are_explained_without_running_them():
    net = model()
    x = paddle.ones([8, 16])
    plain = paddle.explain(net, x, measure=False)
    captured = paddle.explain(paddle.jit.to_static(model()), x, measure=False)
    assert plain["kernels"].splitlines()[0].split(",")[0] == captured["kernels"].splitlines()[0].split(",")[0]
    assert "of limit" not in plain["kernels"]
    np.testing.assert_allclose(paddle.jit.to_static(net)(x).numpy(), model()(x).numpy(), rtol=1e-4, atol=1e-6)


def test_sizes_known_at_run_time_are_explained_at_those_of_the_call():
    f = paddle.jit.to_static(lambda x: (x * 2).sum(), input_spec=[paddle.static.InputSpec([None, 3], "float32")])
    report = paddle.explain(f, paddle.ones([5, 3]), repeats=1)
    assert "kernel calls" in report["kernels"]


def test_attention_that_is_not_fused_and_weights_read_again_have_a_line_each():
    net = paddle.nn.Linear(128, 128)

    def attend(x):
        x = net(net(x)).reshape([2, 12, 4, 32]).transpose([0, 2, 1, 3])
        weights = paddle.nn.functional.softmax(x @ x.transpose([0, 1, 3, 2]), -1)
        return paddle.cumsum(weights, -1) @ x

    def fused(x):
        return paddle.nn.functional.scaled_dot_product_attention(x, x, x)

    report = paddle.explain(attend, paddle.ones([2, 12, 128]), measure=False)
    lines = report["kernels"].splitlines()
    (unfused,) = [line for line in lines if line.startswith("attention that is not fused: 1, 4.5 KiB of scores")]
    (again,) = [line for line in lines if line.startswith("weights read more than once: 1, 64 KiB read again")]
    assert "test_explain.py:" in unfused
    assert "'prim.cumulative' reads its scores" in unfused
    assert ".w_0 of 64 KiB 2 times (test_explain.py:" in again
    plain = paddle.explain(fused, paddle.ones([2, 12, 4, 32]), measure=False)["kernels"]
    assert "not fused" not in plain
    assert "more than once" not in plain


def test_a_report_shows_itself_short_and_saves_everything(tmp_path):
    report = paddle.explain(lambda x: paddle.tanh(x) @ x, paddle.ones([4, 4]), repeats=1)
    assert "== kernels" in repr(report)
    report.save(tmp_path / "x.txt")
    report.save(tmp_path / "x.html")
    assert (tmp_path / "x.txt").read_text().strip() == report.text()
    page = (tmp_path / "x.html").read_text()
    assert "<table>" in page
    assert "phi.tanh" in page
    assert page == report._repr_html_()
    with pytest.raises(KeyError, match="kernels"):
        report["nonsense"]


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="Layer, not int"):
        paddle.explain(3)

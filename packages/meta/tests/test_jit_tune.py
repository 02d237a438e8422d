"""``to_static(tune=)``: products of a captured function are measured where that is asked for."""

import numpy as np
import pytest

import argosy as paddle

compiler = pytest.importorskip("argosy_cinn.compiler")
compiled_code = pytest.importorskip("argosy_cinn.compiled_code")
runtime = pytest.importorskip("argosy_cinn.runtime")
tuning = pytest.importorskip("argosy_cinn.tuning.tuner")


@pytest.fixture
def asked(monkeypatch):
    """The products that a tuner was asked about; it has no opinion on any."""
    monkeypatch.delenv("ARGOSY_TUNE", raising=False)
    products = []
    for module in (compiler, compiled_code):  # nothing is compiled already
        monkeypatch.setattr(module, "object_cache", lambda options: runtime.ObjectCache(None))
    monkeypatch.setattr(tuning.Tuner, "choose_blocking", lambda self, problem, target: products.append(problem))
    return products


@pytest.mark.parametrize("tune", [True, False, None])
def test_products_are_tuned_on_request(tune, asked):
    """The option reaches the compiler, and the result is what it is without."""
    x = np.random.default_rng(5).standard_normal((19, 23)).astype(np.float32)
    w = np.ones((23, 17), np.float32)
    product = paddle.jit.to_static(lambda x, w: paddle.matmul(x, w), full_graph=True, tune=tune)
    np.testing.assert_allclose(product(paddle.to_tensor(x), paddle.to_tensor(w)).numpy(), x @ w, rtol=1e-4)
    assert bool(asked) == (tune is True)


def test_what_is_no_truth_value_is_refused():
    """The error names the argument."""
    with pytest.raises(TypeError, match="tune is True, False or None, got 'yes'"):
        paddle.jit.to_static(lambda x: x, tune="yes")

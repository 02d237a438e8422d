"""Libraries that take arrays of any library by the array API take argosy's tensors."""

import os
import subprocess
import sys

import numpy as np
import pytest

import argosy as paddle

SCIPY = """
import argosy as paddle, numpy as np
from scipy import special, signal, stats, linalg, integrate
x = paddle.to_tensor(np.linspace(0.1, 2.0, 7), "float64") ** 3
found = special.logsumexp(x), stats.zmap(x, x), integrate.trapezoid(x), special.softmax(x), stats.skew(x)
for each in found:
    assert type(each) is paddle.Tensor, type(each)
rows = x.numpy()
plain = special.logsumexp(rows), stats.zmap(rows, rows), integrate.trapezoid(rows), special.softmax(rows)
plain += (stats.skew(rows),)
for each, expected in zip(found, plain, strict=True):
    np.testing.assert_allclose(each.numpy(), expected, rtol=1e-10)
print("ok")
"""


def test_scipy_gives_tensors_for_tensors() -> None:
    """Where it takes arrays of other libraries, which it does when asked to by its variable."""
    pytest.importorskip("scipy")
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", SCIPY], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n", done.stderr


SKLEARN = """
import argosy as paddle, numpy as np, sklearn
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, MinMaxScaler
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, mean_squared_error
rng = np.random.default_rng(0)
rows, target = rng.standard_normal((40, 5)), rng.standard_normal(40)
x, y = paddle.to_tensor(rows, "float64"), paddle.to_tensor(target, "float64")
with sklearn.config_context(array_api_dispatch=True):
    scaled = MinMaxScaler().fit_transform(x)
    assert type(scaled) is paddle.Tensor
    np.testing.assert_allclose(scaled.numpy(), MinMaxScaler().fit_transform(rows), rtol=1e-9)
    turned = PCA(n_components=2, svd_solver="full").fit_transform(x)
    assert type(turned) is paddle.Tensor
    np.testing.assert_allclose(np.abs(turned.numpy()), np.abs(PCA(2, svd_solver="full").fit_transform(rows)), rtol=1e-7)
    model = Ridge(solver="svd").fit(x, y)
    guess = model.predict(x)
    assert type(guess) is paddle.Tensor
    np.testing.assert_allclose(guess.numpy(), Ridge(solver="svd").fit(rows, target).predict(rows), rtol=1e-8)
    assert abs(r2_score(y, guess) - r2_score(target, guess.numpy())) < 1e-9
print("ok")
"""


def test_scikit_learn_computes_on_tensors() -> None:
    """Scaling, principal components, ridge regression and scores, with dispatch switched on."""
    pytest.importorskip("sklearn")
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", SKLEARN], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n", done.stderr


def test_scikit_learn_takes_tensors_without_dispatch() -> None:
    """As it takes anything that numpy reads."""
    linear = pytest.importorskip("sklearn.linear_model")
    x = paddle.to_tensor(np.eye(4), "float64")
    fitted = linear.LinearRegression().fit(x, paddle.arange(4, dtype="float64"))
    np.testing.assert_allclose(fitted.predict(x), np.arange(4), atol=1e-12)

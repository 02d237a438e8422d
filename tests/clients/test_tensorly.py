"""tensorly with argosy as its Paddle back end: algebra and decompositions against its numpy back end."""

import warnings

import numpy as np
import pytest


@pytest.fixture
def tensorly(as_paddle):
    """The library with its Paddle back end chosen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("tensorly")
        library.set_backend("paddle")
    yield library
    library.set_backend("numpy")


def _array(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def test_back_end_functions_are_numpys(tensorly):
    """Products, solves and factorisations that decompositions are made of give numpy's values."""
    a, b = _array(5, 3), _array(5, 2)
    x = tensorly.solve(tensorly.tensor(a[:3]), tensorly.tensor(b[:3]))
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a[:3], b[:3]), rtol=1e-8)
    u, s, v = tensorly.svd(tensorly.tensor(a), full_matrices=False)
    np.testing.assert_allclose((u * s @ v).numpy(), a, atol=1e-10)
    made = tensorly.tenalg.khatri_rao([tensorly.tensor(a[:, :2]), tensorly.tensor(b)])
    np.testing.assert_allclose(made.numpy(), np.einsum("ik,jk->ijk", a[:, :2], b).reshape(-1, 2))


def test_decompositions_reconstruct(tensorly):
    """CP, Tucker and tensor-train decompositions of a tensor of low rank give it back."""
    from tensorly import decomposition

    factors = [_array(n, 2) for n in (4, 5, 6)]
    x = np.einsum("ir,jr,kr->ijk", *factors)
    given = tensorly.tensor(x)
    cp = decomposition.parafac(given, rank=2, n_iter_max=200, init="svd", tol=1e-12)
    np.testing.assert_allclose(cp.to_tensor().numpy(), x, atol=1e-3)
    tucker = decomposition.tucker(given, rank=[2, 2, 2])
    np.testing.assert_allclose(tucker.to_tensor().numpy(), x, atol=1e-8)
    train = decomposition.tensor_train(given, rank=[1, 2, 2, 1])
    np.testing.assert_allclose(train.to_tensor().numpy(), x, atol=1e-8)

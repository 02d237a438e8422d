"""The array API namespace: numpy, which follows the standard, says what is right; the standard's own suite is run by
``tests/array_api/run.py``."""

import itertools

import numpy as np
import pytest

import argosy as paddle
import argosy.array_api as xp

KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64", "complex64", "complex128"]
INFINITE = [complex(a, b) for a in (-np.inf, -2.0, -0.0, 0.0, 2.0, np.inf, np.nan) for b in (-np.inf, 0.0, 1.0, np.nan)]


def dtype(name: str) -> object:
    return getattr(xp, name)


@pytest.mark.parametrize("pair", [*itertools.product(KINDS, KINDS), *itertools.product(FLOATS, FLOATS)], ids=str)
def test_dtypes_promote_as_the_standard_says(pair: tuple[str, str]) -> None:
    """A table of dtypes of one kind, the same for arrays with and without axes."""
    given = xp.ones((2,), dtype=dtype(pair[0])), xp.asarray(1, dtype=dtype(pair[1]))
    if "uint64" in pair and any(name.startswith("i") for name in pair):
        with pytest.raises(TypeError, match="do not promote"):
            xp.result_type(*given)
    else:
        assert xp.result_type(*given).name == np.result_type(*pair).name


@pytest.mark.parametrize("pair", [("int8", "uint8"), ("int32", "int64"), ("float32", "float64")])
def test_functions_and_operators_promote(pair: tuple[str, str]) -> None:
    """The operators within the block."""
    x, y = xp.ones((2,), dtype=dtype(pair[0])), xp.asarray(1, dtype=dtype(pair[1]))
    expected = np.result_type(*pair).name
    assert xp.add(x, y).dtype.name == expected
    with xp.standard_promotion():
        assert (y - x).dtype.name == expected
        assert (y <= x).dtype is xp.bool


def test_operators_follow_paddle_outside_of_the_block() -> None:
    """A tensor without axes counts as a number, as everywhere in argosy."""
    x, y = paddle.ones([2]), paddle.to_tensor(1.0, "float64")
    with xp.standard_promotion():
        assert (x + y).dtype is paddle.float64
    assert (x + y).dtype is paddle.float32


def test_python_numbers_take_the_dtype_of_arrays() -> None:
    """Unless their kind is higher."""
    assert xp.result_type(xp.int8, 1) is xp.int8
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.result_type(xp.float64, 1j) is xp.complex128
    assert xp.subtract(2, xp.ones(3, dtype=xp.int16)).dtype is xp.int16
    with pytest.raises(TypeError, match="Python numbers alone"):
        xp.result_type(1, 2.0)
    with pytest.raises(TypeError, match=r"add\(\) takes arrays and Python numbers, got str"):
        xp.add(xp.ones(3), "1")


def test_any_tensor_names_the_namespace() -> None:
    """Of every version that is known."""
    x = paddle.ones([2])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"2025\.12 of the standard, not '2019\.01'"):
        x.__array_namespace__(api_version="2019.01")
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="'device' should be 'cpu' or None, got 'cuda'"):
        x.to_device("cuda")
    assert set(xp.__array_namespace_info__().dtypes(kind="complex floating")) == {"complex64", "complex128"}


@pytest.mark.parametrize("name", ["acos", "acosh", "asinh", "atanh", "cosh", "exp", "expm1", "sinh", "sign", "tanh"])
def test_complex_functions_at_infinity(name: str) -> None:
    """As C's Annex G has them, which numpy follows but for signs of zeros and of infinities beside NaN."""
    with np.errstate(all="ignore"):
        if name == "sign":  # numpy's of infinite numbers are no numbers
            given = np.array([0j, complex(-0.0, -0.0), 3 + 4j])
            expected = np.array([0j, 0j, 0.6 + 0.8j])
        else:
            given = np.array(INFINITE)
            expected = getattr(np, {"acos": "arccos", "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}
                               .get(name, name))(given)  # fmt: skip
        found = getattr(xp, name)(xp.asarray(given)).numpy()
    for part in ("real", "imag"):
        mine, numpys = np.abs(getattr(found, part)), np.abs(getattr(expected, part))
        if name == "expm1":  # numpy has NaN where C and the standard have numbers
            mine, numpys = mine[~np.isnan(numpys)], numpys[~np.isnan(numpys)]
        np.testing.assert_allclose(mine, numpys, rtol=1e-12, atol=1e-14, err_msg=f"{name} {part}")


REDUCTIONS = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, (0, -1), ()])
def test_reductions_are_numpys(name: str, axis: object) -> None:
    """Over all axes, some or none, kept or not."""
    rows = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
    for keepdims in (False, True):
        expected = np.asarray(getattr(np, name)(rows, axis=axis, keepdims=keepdims))
        found = getattr(xp, name)(xp.asarray(rows), axis=axis, keepdims=keepdims)
        assert tuple(found.shape) == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_sums_of_integers_have_64_bits() -> None:
    """So that they seldom overflow; a dtype that is asked for is used."""
    assert xp.sum(xp.ones(3, dtype=xp.int8)).dtype is xp.int64
    assert xp.prod(xp.ones(3, dtype=xp.uint8)).dtype is xp.uint64
    assert xp.cumulative_sum(xp.ones(3, dtype=xp.int16), dtype=xp.int32).dtype is xp.int32
    assert xp.cumulative_sum(xp.ones(2), include_initial=True).tolist() == [0.0, 1.0, 2.0]


def test_unique_values_and_what_goes_with_them() -> None:
    """Each NaN counts as one of its own."""
    found = xp.unique_all(xp.asarray([[3.0, 1.0], [3.0, float("nan")]]))
    assert found.values.tolist()[:2] == [1.0, 3.0]
    assert found.counts.tolist() == [1, 2, 1]
    assert found.indices.tolist() == [1, 0, 3]
    assert found.inverse_indices.tolist() == [[1, 0], [1, 2]]
    assert len(xp.unique_values(xp.asarray([float("nan")] * 2))) == 2


def test_order_keeps_equals_in_place() -> None:
    """In both directions."""
    x = xp.asarray([1, 0, 1, 0])
    assert xp.argsort(x).tolist() == [1, 3, 0, 2]
    assert xp.argsort(x, descending=True).tolist() == [0, 2, 1, 3]


def test_arrays_are_shared_or_copied_as_asked() -> None:
    """``copy=False`` shares or raises."""
    x = paddle.ones([2])
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True) is not x
    rows = np.zeros(3)
    shared = xp.asarray(rows, copy=False)
    rows[0] = 5.0
    assert shared.tolist() == [5.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="float32 does not become float64 without a copy"):
        xp.asarray(x, dtype=xp.float64, copy=False)


def test_functions_of_the_namespace_have_gradients_and_are_captured() -> None:
    """They are argosy's operators."""
    x = paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]], stop_gradient=False)
    xp.sum(xp.linalg.inv(x)).backward()
    assert x.grad is not None
    assert x.grad[0, 0].item() == pytest.approx(-0.25)
    captured = paddle.jit.to_static(lambda a: xp.matmul(xp.matrix_transpose(a), xp.tanh(a)), full_graph=True)
    given = paddle.to_tensor([[0.5, 1.0]])
    np.testing.assert_allclose(captured(given).numpy(), given.numpy().T @ np.tanh(given.numpy()), rtol=1e-6)


def test_errors_name_argument_and_expectation() -> None:
    """As everywhere in argosy."""
    x = xp.ones((2, 3))
    with pytest.raises(ValueError, match=r"squeeze\(\): axis 0 has size 2, not 1"):
        xp.squeeze(x, 0)
    with pytest.raises(ValueError, match=r"sum\(\): axis 5 is out of range|sum: axis 5|axis 5 is out of range"):
        xp.sum(x, axis=5)
    with pytest.raises(ValueError, match=r"axis -1 of both arguments should have one size, got 3 and 2"):
        xp.vecdot(x, xp.ones(2))
    with pytest.raises(ValueError, match="should be a dtype or one of bool, signed integer"):
        xp.isdtype(xp.int8, "floats")

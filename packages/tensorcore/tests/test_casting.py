"""Arrays in another dtype, where their values fit it."""

import ml_dtypes
import numpy as np
import pytest

from argosy_tensorcore.casting import cast_exactly
from argosy_tensorcore.conversion import DataError
from argosy_tensorcore.dtype import ALL_DTYPES, as_dtype


@pytest.mark.parametrize("dtype", [d.name for d in ALL_DTYPES if d.kind in "iu"])
def test_integers_fit_where_their_dtype_holds_them(dtype):
    """Every edge of every dtype beside every other one's."""
    limits = np.iinfo(dtype)
    numbers = {int(n) for d in ALL_DTYPES if d.kind in "iu" for n in (np.iinfo(d.name).min, np.iinfo(d.name).max)}
    for number in numbers | {n + 1 for n in numbers if n < np.iinfo("uint64").max} | {0, -1}:
        for source in ("int64", "uint64"):
            if not np.iinfo(source).min <= number <= np.iinfo(source).max:
                continue
            array = np.array([0, number], source)
            if limits.min <= number <= limits.max:
                assert cast_exactly(array, as_dtype(dtype)).tolist() == [0, number]
                assert cast_exactly(array, as_dtype(dtype)).dtype == dtype
            else:
                with pytest.raises(DataError, match=f"holds {number}, which {dtype} does not"):
                    cast_exactly(array, as_dtype(dtype))


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([2**24]), "float32"),
        (np.array([2**53]), "float64"),
        (np.array([256]), "bfloat16"),
        (np.array([2048], np.uint16), "float16"),
        (np.array([0.1, np.nan, -np.inf]), "float32"),
        (np.array([1e-300]), "float32"),
        (np.array([1.5], np.float32), "complex64"),
        (np.array([3]), "complex64"),
        (np.array([True]), "int8"),
        (np.array([0.1], ml_dtypes.bfloat16), "float64"),
    ],
)
def test_what_fits_is_rounded_at_most(given, dtype):
    wanted = as_dtype(dtype)
    made = cast_exactly(given, wanted)
    assert made.dtype == wanted.numpy
    np.testing.assert_array_equal(made, given.astype(wanted.numpy))


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([2**24 + 1]), "float32"),
        (np.array([2**63 - 1]), "float64"),
        (np.array([257]), "bfloat16"),
        (np.array([70_000]), "float16"),
        (np.array([1e300]), "float32"),
        (np.array([70_000.0]), "float16"),
        (np.array([1.0]), "int64"),
        (np.array([1]), "bool"),
        (np.array([1j]), "float64"),
    ],
)
def test_what_does_not_fit_is_refused(given, dtype):
    with pytest.raises(DataError, match=f"which {dtype} does not"):
        cast_exactly(given, as_dtype(dtype))


def test_arrays_of_the_dtype_stay_as_they_are():
    array = np.arange(3)
    assert cast_exactly(array, as_dtype("int64")) is array

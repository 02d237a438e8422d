"""LAPACK and BLAS routines of the library that numpy itself runs on, for what `numpy.linalg` does not offer.

They are looked up by name behind numpy's own extension module. Where they are not found (a numpy whose library hides
them, or a system whose loader does not look into libraries behind others), :func:`routine` answers None, and the
kernels that ask go on with numpy.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_NAMES = {  # by whether integers have 64 bits; `{}` is the routine with its letter
    True: {"lapack": ("scipy_{}_64_", "{}_64_"), "cblas": ("scipy_cblas_{}64_", "cblas_{}64_")},
    False: {"lapack": ("scipy_{}_", "{}_"), "cblas": ("scipy_cblas_{}", "cblas_{}")},
}
_ROW_MAJOR, _UPPER, _LOWER, _NON_UNIT, _UNIT, _LEFT, _RIGHT = 101, 121, 122, 131, 132, 141, 142
_PLAIN, _TRANSPOSED, _ADJOINT = 111, 112, 113


@cache
def _library() -> tuple[Any, bool] | None:
    """Numpy's linear algebra as a shared library, and whether its integers have 64 bits."""
    try:
        from numpy.linalg import _umath_linalg

        return ctypes.CDLL(_umath_linalg.__file__), bool(getattr(_umath_linalg, "_ilp64", False))
    except (ImportError, OSError, AttributeError):
        return None


def _find(kind: str, name: str) -> Any:
    found = _library()
    if found is None:
        return None
    library, wide = found
    for pattern in _NAMES[wide][kind]:
        try:
            function = getattr(library, pattern.format(name))
        except AttributeError:
            continue
        function.restype = None
        return function
    return None


@cache
def _integer() -> np.dtype[Any]:
    found = _library()
    return np.dtype(np.int64 if found is not None and found[1] else np.int32)


def _address(x: Array) -> int:
    place: int = x.__array_interface__["data"][0]  # half of what `x.ctypes.data` costs
    return place


@cache
def _lapack(name: str, char: str, arguments: int) -> Any:
    """A routine of nothing but addresses, for the numpy type `char`; None where it is missing."""
    function = _find("lapack", _LETTERS[char] + name) if char in _LETTERS else None
    if function is not None:
        function.argtypes = [ctypes.c_void_p] * arguments
    return function


@cache
def _trsm(letter: str) -> Any:
    """The triangular solve with its last scalar, one, filled in."""
    function = _find("cblas", f"{letter}trsm")
    if function is None:
        return None
    scalar = {"s": ctypes.c_float, "d": ctypes.c_double}.get(letter, ctypes.c_void_p)
    integer = ctypes.c_int64 if _integer().itemsize == 8 else ctypes.c_int32
    function.argtypes = [ctypes.c_int] * 5 + [integer, integer, scalar] + [ctypes.c_void_p, integer] * 2
    return function


def factor(x: Array) -> tuple[Array, Array] | None:
    """What getrf leaves of the matrices `x` [..., m, n], and its pivots, counted from 0; None where it is missing.

    Zero pivots stay in the factors, as its `info` says.
    """
    function = _lapack("getrf", x.dtype.char, 6)
    if function is None:
        return None
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    packed = np.array(x.swapaxes(-1, -2), order="C")  # LAPACK's matrices are columns after columns
    pivots = np.empty((*x.shape[:-2], steps), _integer())
    if not packed.size:
        return x.copy(), np.zeros(pivots.shape, np.int32)
    sizes = np.array([rows, columns, 0], _integer())
    m = _address(sizes)
    n, info = m + sizes.itemsize, m + 2 * sizes.itemsize
    matrix, pivot = _address(packed), _address(pivots)
    for _ in range(packed.size // (rows * columns)):
        function(m, n, matrix, m, pivot, info)
        matrix += rows * columns * packed.itemsize
        pivot += steps * pivots.itemsize
    return np.ascontiguousarray(packed.swapaxes(-1, -2)), (pivots - 1).astype(np.int32)


@cache
def _gesv() -> Any:
    """What `numpy.linalg.solve` calls: gesv for each matrix of a batch, NaN where a pivot is zero; None if missing."""
    try:
        from numpy.linalg import _umath_linalg

        return _umath_linalg.solve
    except (ImportError, AttributeError):
        return None


def solve_system(a: Array, b: Array) -> Array | None:
    """The y of ``a y = b`` by gesv; None where that is missing, a pivot is zero or something is NaN."""
    function = _gesv()
    if function is None or a.dtype.char not in _LETTERS or not b.size:
        return None
    with np.errstate(all="ignore"):
        y: Array = function(a, b)
        return None if np.isnan(y.sum()) else y


def substitute(
    a: Array, b: Array, *, lower: bool, transpose: bool, conjugate: bool, unit: bool, left: bool
) -> Array | None:
    """The solution of ``op(a) y = b`` (``y op(a) = b`` unless `left`) by trsm; None where it is missing.

    Of the forms of `op`, it has no conjugate that is not transposed.
    """
    letter = _LETTERS.get(a.dtype.char)
    if letter is None or (conjugate and not transpose):
        return None
    function = _trsm(letter)
    if function is None:
        return None
    a, y = np.ascontiguousarray(a), np.array(b, order="C")
    if not y.size:
        return y
    rows, columns = y.shape[-2:]
    one: Any = 1.0 if letter in "sd" else (ctypes.c_double * 2)(1.0) if letter == "z" else (ctypes.c_float * 2)(1.0)
    form = (
        _ROW_MAJOR, _LEFT if left else _RIGHT, _LOWER if lower else _UPPER,
        (_ADJOINT if conjugate else _TRANSPOSED) if transpose else _PLAIN, _UNIT if unit else _NON_UNIT,
        rows, columns, one,
    )  # fmt: skip
    size = a.shape[-1]
    matrix, right = _address(a), _address(y)
    for _ in range(y.size // (rows * columns)):
        function(*form, matrix, size, right, columns)
        matrix += size * size * a.itemsize
        right += rows * columns * y.itemsize
    return y

"""Masks that leave at least ``n`` zeros in every ``m`` neighbours of matrices, on the host."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np

__all__ = [
    "CheckMethod", "MaskAlgo", "calculate_density", "check_mask_1d", "check_mask_2d", "check_sparsity", "create_mask",
    "get_mask_1d", "get_mask_2d_best", "get_mask_2d_greedy",
]  # fmt: skip

Array = np.ndarray[Any, Any]

_MOST_PATTERNS = 10**5


class MaskAlgo(Enum):
    """How a mask is chosen."""

    MASK_1D = "get_mask_1d"
    MASK_2D_GREEDY = "get_mask_2d_greedy"
    MASK_2D_BEST = "get_mask_2d_best"


class CheckMethod(Enum):
    """How a matrix is checked."""

    CHECK_1D = "check_mask_1d"
    CHECK_2D = "check_mask_2d"

    @staticmethod
    def get_checking_method(mask_algo: MaskAlgo) -> CheckMethod:
        """The check that masks of this kind pass. Raises TypeError for what is no MaskAlgo."""
        _of_kind("get_checking_method", "mask_algo", mask_algo, MaskAlgo)
        return CheckMethod.CHECK_1D if mask_algo is MaskAlgo.MASK_1D else CheckMethod.CHECK_2D


def calculate_density(x: Array) -> float:
    """The share of elements that are not zero."""
    return float(np.count_nonzero(x) / np.size(x))


def check_mask_1d(mat: Array, n: int, m: int) -> bool:
    """Whether every ``m`` neighbours of a row have ``n`` zeros; rows are filled up with zeros."""
    return bool((np.count_nonzero(_runs(_matrix("check_mask_1d", np.atleast_2d(mat)), m), axis=1) <= m - n).all())


def check_mask_2d(mat: Array, n: int, m: int) -> bool:
    """Whether every row and every column of every block of ``m`` by ``m`` has ``n`` zeros (Paddle asks it of the rows
    or of the columns)."""
    kept = _blocks(_matrix("check_mask_2d", mat), m) != 0
    return bool((kept.sum(1) <= m - n).all() and (kept.sum(2) <= m - n).all())


def get_mask_1d(mat: Array, n: int, m: int) -> Array:
    """Zeros for the ``n`` smallest of every ``m`` neighbours of a row, ones for the others."""
    mat = _matrix("get_mask_1d", mat)
    runs = _runs(mat, m)
    mask = np.ones_like(runs)
    np.put_along_axis(mask, np.argsort(np.absolute(runs), axis=1)[:, :n], 0, axis=1)
    return mask.reshape(len(mat), -1)[:, : mat.shape[1]]


def get_mask_2d_greedy(mat: Array, n: int, m: int) -> Array:
    """Ones for the largest elements of every block of ``m`` by ``m``, taken in their order while their row and their
    column have fewer than ``m - n``."""
    mat = _matrix("get_mask_2d_greedy", mat)
    blocks = _blocks(mat, m)
    order = np.argsort(np.absolute(blocks).reshape(-1, m * m), axis=1)[:, ::-1]
    mask, every = np.zeros_like(blocks), np.arange(len(blocks))
    for place in order.T:
        row, column = place // m, place % m
        room = (mask[every, row].sum(1) < m - n) & (mask[every, :, column].sum(1) < m - n)
        mask[every, row, column] = room
    return _join(mask, mat.shape)


def get_mask_2d_best(mat: Array, n: int, m: int) -> Array:
    """The mask of every block of ``m`` by ``m``, ``m - n`` ones in each row and column, that keeps most of its
    absolute values (Paddle adds the values with their signs).

    Raises ValueError where there would be more than 100,000 masks to try.
    """
    mat = _matrix("get_mask_2d_best", mat)
    patterns, blocks = _patterns(n, m), _blocks(mat, m)
    kept = np.absolute(blocks).reshape(-1, m * m) @ patterns.reshape(-1, m * m).T
    return _join(patterns[kept.argmax(1)].astype(mat.dtype), mat.shape)


def create_mask(tensor: Array, func_name: MaskAlgo = MaskAlgo.MASK_1D, n: int = 2, m: int = 4) -> Array:
    """A mask of the tensor's shape and dtype: along its last axis, or of 4 axes along the second but last.

    Raises ValueError for more than 4 axes, TypeError for what is no MaskAlgo.
    """
    _of_kind("create_mask", "func_name", func_name, MaskAlgo)
    matrix, shape = _as_matrix("create_mask", tensor)
    mask: Array = _FUNCTIONS[func_name.value](matrix, n, m).reshape(shape)
    if tensor.ndim == 4:
        mask = mask.swapaxes(2, 3)
    return mask.astype(tensor.dtype)


def check_sparsity(tensor: Array, func_name: CheckMethod = CheckMethod.CHECK_1D, n: int = 2, m: int = 4) -> bool:
    """Whether a tensor, read as :func:`create_mask` reads it, passes the check.

    Raises ValueError for more than 4 axes, TypeError for what is no CheckMethod.
    """
    _of_kind("check_sparsity", "func_name", func_name, CheckMethod)
    found: bool = _FUNCTIONS[func_name.value](_as_matrix("check_sparsity", tensor)[0], n, m)
    return found


_FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (check_mask_1d, check_mask_2d, get_mask_1d, get_mask_2d_greedy, get_mask_2d_best)
}


def _of_kind(function: str, argument: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{function}(): argument {argument!r} should be a {kind.__name__}, got {type(value).__name__}")


def _matrix(function: str, mat: Array) -> Array:
    if mat.ndim != 2:
        raise ValueError(f"{function}(): argument 'mat' should have 2 axes, got shape {mat.shape}")
    return mat


def _as_matrix(function: str, tensor: Array) -> tuple[Array, tuple[int, ...]]:
    """The tensor as a matrix of float64, and the shape that a mask of it has."""
    if not 1 <= tensor.ndim <= 4:
        raise ValueError(f"{function}(): argument 'tensor' should have 1 to 4 axes, got shape {tensor.shape}")
    turned = tensor.swapaxes(2, 3) if tensor.ndim == 4 else tensor
    return turned.astype(np.float64).reshape(-1, turned.shape[-1]), turned.shape


def _runs(mat: Array, m: int) -> Array:
    """Every ``m`` neighbours of the rows, which are filled up with zeros."""
    return np.pad(mat, ((0, 0), (0, -mat.shape[1] % m))).reshape(-1, m)


def _blocks(mat: Array, m: int) -> Array:
    """The blocks ``[count, m, m]`` of a matrix, which is filled up with zeros."""
    filled = np.pad(mat, [(0, -size % m) for size in mat.shape])
    return filled.reshape(len(filled) // m, m, -1, m).swapaxes(1, 2).reshape(-1, m, m)


def _join(blocks: Array, shape: tuple[int, ...]) -> Array:
    """The matrix of this shape that the blocks fill."""
    m = blocks.shape[1]
    rows, columns = (-(-size // m) for size in shape)
    whole = blocks.reshape(rows, columns, m, m).swapaxes(1, 2).reshape(rows * m, columns * m)
    return whole[: shape[0], : shape[1]]


@lru_cache
def _patterns(n: int, m: int) -> Array:
    """All masks ``[count, m, m]`` with ``m - n`` ones in each row and column."""
    if comb(m, n) ** m > _MOST_PATTERNS:
        raise ValueError(f"get_mask_2d_best(): there are too many masks of {m} by {m}; get_mask_2d_greedy tries none")
    rows = [[int(i in kept) for i in range(m)] for kept in combinations(range(m), m - n)]
    found: Array = np.array(list(product(rows, repeat=m)), np.float64)
    kept: Array = found[(found.sum(1) == m - n).all(1)]
    return kept

"""Errors of indices that are out of range: which one is, and what is said of it, eagerly and by compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_phi_ops.errors import AxisError, UnsupportedSizes
from argosy_pir.core import Block, Operation
from argosy_pir.dims import SymExpr
from argosy_pir.location import UNKNOWN, Location

__all__ = ["CHECK", "checks_size", "find_outlier", "index_error", "index_error_of", "size_error_of"]

CHECK = "prim.check_index"


def checks_size(op: Operation) -> bool:
    """Whether ``op`` refuses open sizes of calls (see `ops.common.arguments.require_size`), not indices."""
    return op.name == CHECK and isinstance(op.attributes["size"], SymExpr) and _is_constant(op.operand(0).owner)


def _is_constant(owner: Operation | Block) -> bool:
    return isinstance(owner, Operation) and owner.name == "builtin.constant"


def size_error_of(op: Operation, size: int) -> UnsupportedSizes:
    """The error for a ``size`` below one of ``op``, a check of sizes, with the user's line."""
    where = "" if op.location.is_unknown else f", at {op.location}"
    a = op.attributes
    return UnsupportedSizes(f"{a['operator']}: {a['size']} is {size} in this call; it has to be one or more{where}")


def find_outlier(indices: np.ndarray[Any, Any], low: int, size: int, besides: int | None) -> int | None:
    """The first index that is less than ``low`` or not less than ``size``, and not ``besides``; None where none is."""
    if not indices.size or (int(indices.min()) >= low and int(indices.max()) < size):
        return None
    wrong = indices[(indices < low) | (indices >= size)]
    wrong = wrong if besides is None else wrong[wrong != besides]
    return int(wrong.flat[0]) if wrong.size else None


def index_error(operator: str, index: int, low: int, size: int, besides: int | None = None) -> AxisError:
    """The error for an index of an application of ``operator``."""
    also = "" if besides is None or low <= besides < size else f", or {besides}"
    expected = f"{low} to {size - 1} for an axis of {size}{also}" if size else "an axis with elements, got one of 0"
    return AxisError(f"{operator}: index {index} is out of range; expected {expected}")


def index_error_of(
    op: Operation, index: int, number: Callable[[Any], int] = int, caller: Location = UNKNOWN
) -> AxisError:
    """The error for an index that ``op``, a ``prim.check_index``, refuses, with the user's line, or that of the
    ``caller`` where it has none; ``number`` gives the sizes of this call."""
    a = op.attributes
    besides = None if a["besides"] is None else number(a["besides"])
    error = index_error(a["operator"], index, number(a["low"]), number(a["size"]), besides)
    where = caller if op.location.is_unknown else op.location
    return error if where.is_unknown else AxisError(f"{error}, at {where}")

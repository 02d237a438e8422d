"""Numpy kernels of the primitives, one module per family; importing this package registers all of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from argosy_phi_ops.reference.kernels import (
    attention,
    communication,
    contraction,
    convolution,
    decomposition,
    elementwise,
    grouped_products,
    host,
    indexing,
    layout,
    random,
    reduction,
    special,
    transform,
)
from argosy_phi_ops.reference.kernels.registry import KERNELS, kernel, kernel_for

__all__ = [
    "KERNELS",
    "attention",
    "communication",
    "contraction",
    "convolution",
    "decomposition",
    "elementwise",
    "evaluate",
    "grouped_products",
    "host",
    "indexing",
    "kernel",
    "kernel_for",
    "layout",
    "random",
    "reduction",
    "special",
    "transform",
]


class _Declaration(Protocol):
    """What evaluation needs to know of a primitive's declaration."""

    name: str
    broadcasts: bool


def evaluate(primitive: _Declaration, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """The primitive's kernel on arrays and Python numbers; numbers take the dtype of the last array.

    Shapes of elementwise operands broadcast as numpy's do.
    """
    dtypes = [x.dtype for x in operands if hasattr(x, "dtype")]
    arrays = [x if type(x) is np.ndarray else np.asarray(x, getattr(x, "dtype", dtypes[-1])) for x in operands]
    if primitive.broadcasts and len({x.shape for x in arrays}) > 1:
        arrays = list(np.broadcast_arrays(*arrays))
    return kernel_for(primitive.name)(*arrays, **attributes)

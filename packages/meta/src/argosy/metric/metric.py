"""``Metric``: a figure that is computed batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.argument_checks import CheckedConstructor
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["Metric", "as_array"]


class Metric(CheckedConstructor):
    """The base of metrics: ``compute`` prepares a batch with tensors, ``update`` adds it, ``accumulate`` gives the
    figure so far, ``reset`` begins anew.
    """

    def name(self) -> Any:
        """The metric's name, or a list of names when it gives several figures."""
        raise NotImplementedError(f"{type(self).__name__} does not define name()")

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} does not define reset()")

    def update(self, *args: Any) -> Any:
        """Add a batch: what ``compute`` gave."""
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def accumulate(self) -> Any:
        """The figure (or list of figures) over all batches since the last reset."""
        raise NotImplementedError(f"{type(self).__name__} does not define accumulate()")

    def compute(self, *args: Any) -> Any:
        """What ``update`` takes, from outputs and labels; by default these themselves."""
        return args


def as_array(x: Any, metric: str) -> Any:
    """``x``, a tensor or an array, as an array. Raises TypeError for what is not numeric."""
    array = to_numpy(x) if type(x) is Tensor else np.asarray(x)
    if array.dtype.kind in "OUS":
        raise TypeError(f"{metric}.update() takes tensors or arrays of numbers, not {type(x).__name__}")
    return array

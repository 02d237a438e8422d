"""Classes drawn for a training step over very many of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy_phi_ops.context import context
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.rng import philox_bits
from argosy_tensorcore.tensor import Tensor

__all__ = ["class_center_sample"]


@validate_call
def class_center_sample(label: Tensor, num_classes: int, num_samples: int, group: Any = None) -> tuple[Tensor, Tensor]:
    """(labels [N] renumbered, the sampled classes in rising order): all classes of ``label`` [N] and others at random.

    As many others are drawn as it takes to make ``num_samples``; with more classes in the labels, none (An et al.,
    2021). It depends on values, so it runs eagerly. Raises ValueError for labels outside of the classes,
    NotImplementedError for a ``group``, whose ranks would hold parts of the classes each.
    """
    if group:
        raise NotImplementedError("class_center_sample: classes spread over a group are not implemented")
    if not 0 < num_samples <= num_classes:
        raise ValueError(f"class_center_sample: num_samples {num_samples} is not in [1, num_classes {num_classes}]")
    given = to_numpy(label)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"class_center_sample: labels are integers [N], got {given.dtype} {list(given.shape)}")
    if given.size and not (given.min() >= 0 and given.max() < num_classes):
        raise ValueError(f"class_center_sample: labels from {given.min()} to {given.max()} of {num_classes} classes")
    positive = np.unique(given)
    others = np.setdiff1d(np.arange(num_classes, dtype=given.dtype), positive, assume_unique=True)
    order = np.argsort(philox_bits(*context().generator.draw(), [len(others)]), kind="stable")
    drawn = others[order[: max(num_samples - len(positive), 0)]]
    sampled = np.sort(np.concatenate([positive, drawn]))
    return Tensor(np.searchsorted(sampled, given).astype(given.dtype)), Tensor(sampled)

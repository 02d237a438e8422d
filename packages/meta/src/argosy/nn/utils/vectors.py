"""Parameters as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from argosy.argument_checks import validate_call
from argosy.nn import functional as F
from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


@validate_call
def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """The elements of all parameters in a row, as one tensor [number of elements]."""
    if not hasattr(type(parameters), "__iter__"):
        raise TypeError(f"parameters_to_vector(): argument 'parameters' must hold tensors, got {parameters!r:.60}")
    parts: list[Any] = list(parameters)
    if not parts:
        raise ValueError("parameters_to_vector: there are no parameters")
    return F.concat([p.reshape([-1]) for p in parts])


@validate_call
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Overwrite the parameters, in order, with the elements of ``vec``; raises ValueError when their number differs."""
    targets, source, at = list(parameters), _flatten(vec), 0
    sizes = [math.prod(p.shape) for p in targets]
    if sum(sizes) != source.shape[0]:
        raise ValueError(f"vector_to_parameters: {source.shape[0]} elements for parameters of {sum(sizes)}")
    with no_grad():
        for target, size in zip(targets, sizes, strict=True):
            write(target, source[at : at + size].reshape(list(target.shape)))
            at += size


def _flatten(vec: Any) -> Any:
    return vec.detach().reshape([-1])

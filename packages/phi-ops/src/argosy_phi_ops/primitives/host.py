"""Computation outside of the closed set: a function of this process, called by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives.declaration import primitive
from argosy_pir.types import TensorType

_NOTHING: dict[str, Any] = {}


@primitive("host")
def host_call(*operands: TensorType, function: str, arguments: Mapping[str, Any] = _NOTHING) -> tuple[TensorType, ...]:
    """The results of the host function registered as ``function``, called with the plain data ``arguments``.

    A function is pure: it may be called again, or not at all when nobody needs its results.
    """
    from argosy_phi_ops.custom_ops.host_functions import find_host  # most processes have none

    return tuple(find_host(function).infer(operands, arguments))


@host_call.axes
def _(*operands: TensorType, function: str, arguments: Mapping[str, Any] = _NOTHING) -> AxisNotation | None:
    from argosy_phi_ops.custom_ops.host_functions import find_host

    return find_host(function).notation(operands)

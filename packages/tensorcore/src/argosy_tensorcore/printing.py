"""How tensors print: ``Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True, ...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy_tensorcore.conversion import host_array

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor


def format_tensor(tensor: Tensor) -> str:
    """The text of a tensor."""
    return str(host_array(tensor, "printing"))

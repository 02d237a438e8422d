"""The largest absolute value of groups of a weight's inputs."""

from __future__ import annotations

from typing import Any

from argosy.quantization.factory import ObserverFactory
from argosy.quantization.observers.abs_max import AbsmaxObserverLayer

__all__ = ["GroupWiseWeightObserver", "GroupWiseWeightObserverLayer"]


class GroupWiseWeightObserverLayer(AbsmaxObserverLayer):
    """A scale for each ``group_size`` inputs of each output: [inputs / group_size, outputs], of the last call."""

    def __init__(self, layer: Any, quant_bits: Any = 8, group_size: int = 128) -> None:
        super().__init__(layer, quant_bits)
        if group_size not in (64, 128):
            raise ValueError(f"GroupWiseWeightObserver: group_size is 64 or 128, got {group_size}")
        self.group_size = group_size

    def forward(self, input: Any) -> Any:
        """The weight [inputs, outputs]. Raises ValueError where groups do not divide it."""
        if input.ndim != 2 or input.shape[0] % self.group_size:
            raise ValueError(
                f"GroupWiseWeightObserver: a weight is [a multiple of {self.group_size}, outputs], got {input.shape}"
            )
        groups = input.detach().reshape([-1, self.group_size, input.shape[1]])
        self._max = groups.abs().max(axis=1).astype("float32").clip(min=1e-8)  # no division by 0
        return input


class GroupWiseWeightObserver(ObserverFactory):
    """Makes observers of groups of 128 inputs. quant_bits: of an integer; group_size changes nothing, as in Paddle."""

    made = GroupWiseWeightObserverLayer

    def __init__(self, quant_bits: Any = 8, group_size: int = 128) -> None:
        super().__init__(quant_bits=quant_bits)

"""Places for quanters before functions that are no layers."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike
from argosy.nn.layer import Layer

__all__ = ["QuanterStub", "Stub"]


class Stub(Layer):
    """The identity, which QAT and PTQ replace by a quanter.

    observer: the factory of the quanter; by default that of activations in the ``QuantConfig``.
    """

    def __init__(self, observer: Any = None) -> None:
        super().__init__()
        self._observer = observer

    def forward(self, input: TensorLike) -> Any:
        """The input."""
        return input


class QuanterStub(Layer):
    """What a :class:`Stub` becomes: the identity, with a quanter."""

    def __init__(self, layer: Stub, q_config: Any) -> None:
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input: TensorLike) -> Any:
        """The input, as the quanter gives it."""
        return input if self._observer is None else self._observer(input)

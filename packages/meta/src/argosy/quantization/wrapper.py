"""A layer with an observer of its input or output."""

from __future__ import annotations

from typing import Any

from argosy.nn.layer import Layer

__all__ = ["ObserveWrapper"]


class ObserveWrapper(Layer):
    """``observed`` after ``observer`` or, without ``observe_input``, before it."""

    def __init__(self, observer: Layer, observed: Layer, observe_input: bool = True) -> None:
        super().__init__()
        self._observer, self._observed, self._observe_input = observer, observed, observe_input

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the observed layer gives."""
        first, second = self._observer, self._observed
        if not self._observe_input:
            first, second = second, first
        return second(first(*inputs, **kwargs), **kwargs)

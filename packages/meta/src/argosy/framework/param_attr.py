"""What users may say about a parameter when a layer makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["ParamAttr", "as_param_attr"]


class ParamAttr:
    """Name, initializer, learning-rate multiplier, regularizer, trainability and clipping of a parameter to be made.

    Raises TypeError for a name that is no string and an initializer that cannot be called.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Callable[..., Any] | None = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"ParamAttr(): argument 'name' must be a string, got {name!r:.60}")
        if initializer is not None and not callable(initializer):
            raise TypeError(f"ParamAttr(): argument 'initializer' must be an initializer, got {initializer!r:.60}")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """What libraries write for :func:`as_param_attr`; of a list for each of its elements, and False stays False."""
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(attr) for attr in arg]
        return False if arg is False else as_param_attr(arg)

    def __repr__(self) -> str:
        return f"ParamAttr(name={self.name!r}, learning_rate={self.learning_rate}, trainable={self.trainable})"


def as_param_attr(attr: object) -> ParamAttr | None:
    """The ParamAttr that ``attr`` means: None and True give defaults, a string a name, an initializer itself.

    ``False`` gives None: no parameter is wanted. Raises TypeError for anything else.
    """
    if attr is None or attr is True:
        return ParamAttr()
    if attr is False:
        return None
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if callable(attr):
        return ParamAttr(initializer=attr)
    raise TypeError(f"a parameter attribute is a ParamAttr, a name, an initializer or a bool, not {attr!r}")

"""Quanters to be: classes with the arguments that each layer's own is made with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar

__all__ = ["ClassWithArguments", "ObserverFactory", "QuanterFactory", "quanter"]


class ClassWithArguments:
    """Arguments of a class that is named by ``_get_class``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args, self._kwargs = args, kwargs

    @property
    def args(self) -> tuple[Any, ...]:
        """By position."""
        return self._args

    @property
    def kwargs(self) -> dict[str, Any]:
        """By name."""
        return self._kwargs

    def __repr__(self) -> str:
        shown = [*map(str, self._args), *(f"{name}={value}" for name, value in self._kwargs.items())]
        return f"{type(self).__name__}({','.join(shown)})"


class QuanterFactory(ClassWithArguments):
    """Makes a quanter for each layer. Subclasses name its class, or override ``_get_class``."""

    made: ClassVar[type[Any] | None] = None

    def _get_class(self) -> Any:
        if self.made is None:
            raise NotImplementedError(f"{type(self).__name__} names no class of quanters")
        return self.made

    def _instance(self, layer: Any) -> Any:
        return self._get_class()(layer, *self._args, **self._kwargs)


ObserverFactory = QuanterFactory


def quanter(class_name: str) -> Callable[[type[Any]], type[Any]]:
    """Decorator of a class of quanters, whose first argument is the layer: a factory of it, called ``class_name``, is
    put beside it in its module."""

    def declare(target: type[Any]) -> type[Any]:
        module = sys.modules[target.__module__]
        factory = type(class_name, (QuanterFactory,), {"made": target, "__module__": target.__module__})
        setattr(module, class_name, factory)
        if "__all__" in vars(module):
            module.__all__.append(class_name)
        return target

    return declare

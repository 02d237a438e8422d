"""Layers as data: a class, or where one is found, with the arguments that it is made with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

__all__ = ["LayerSpec", "build_spec_layer", "get_spec_layer"]


@dataclass(repr=False)
class LayerSpec:
    """A layer that :func:`build_spec_layer` makes: ``layer`` is a class, a function, or ``(module, name)`` of one;
    ``extra_kwargs`` are arguments of its own; ``sublayers_spec``, where there is one, is passed on by that name."""

    layer: tuple[str, str] | type | FunctionType
    extra_kwargs: dict[str, Any] = field(default_factory=dict)
    sublayers_spec: Any = None

    def __repr__(self) -> str:
        if isinstance(self.layer, tuple):
            return "".join(f"{part!r}," for part in self.layer)
        return f"{self.layer!r}{self.extra_kwargs!r}"


def get_spec_layer(spec_or_layer: LayerSpec | Callable[..., Any], **additional_kwargs: Any) -> Callable[..., Any]:
    """The class or function that a specification is about. Raises ImportError where its module has no such name."""
    found = spec_or_layer.layer if isinstance(spec_or_layer, LayerSpec) else spec_or_layer
    if not isinstance(found, tuple):
        return found
    module, name = found
    try:
        layer: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ImportError(f"LayerSpec: module {module} has no {name!r}") from None
    return layer


def build_spec_layer(spec_or_layer: LayerSpec | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A layer made of ``args``, of the specification's own arguments and of ``kwargs``; a function as it is.

    Raises TypeError, naming the class, for arguments that it does not take.
    """
    layer = get_spec_layer(spec_or_layer)
    if isinstance(layer, FunctionType):
        return layer
    if isinstance(spec_or_layer, LayerSpec):
        if spec_or_layer.sublayers_spec is not None:
            kwargs["sublayers_spec"] = spec_or_layer.sublayers_spec
        kwargs = {**spec_or_layer.extra_kwargs, **kwargs}
    try:
        return layer(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{error} when instantiating {getattr(layer, '__name__', layer)}") from error

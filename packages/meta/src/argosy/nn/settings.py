"""Layers that call a function with settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from argosy.argument_checks import check_choice
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["FunctionLayer"]


class FunctionLayer(Layer):
    """``functional.<function>(..., **settings)``. Each setting is an attribute under the name that it has in Paddle, so
    that subclasses read it, and what is assigned to it holds from then on.
    """

    function: ClassVar[str]
    prefix: ClassVar[str] = ""
    """What stands before a setting's name in that of its attribute."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Attributes that are called otherwise."""
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What settings may be that are one of several words."""
    name: str | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._keep(settings)

    def _keep(self, settings: Mapping[str, Any]) -> None:
        for name, words in self.choices.items():
            check_choice(type(self).__name__, name, settings[name], words)
        self._places = {name: self.renamed.get(name, self.prefix + name) for name in settings}
        for name, value in settings.items():
            setattr(self, self._places[name], value)

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings as they are now."""
        return {name: getattr(self, place) for name, place in self._places.items()}

    def _apply_function(self, *tensors: Any) -> Any:
        """What the function makes of these."""
        return getattr(F, self.function)(*tensors, **self._settings)

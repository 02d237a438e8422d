"""Ordered hooks of a layer, and handles that remove them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["HookHandle", "Hooks"]


class HookHandle:
    """Removes a registered hook."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: Hooks, key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._hooks.pop(self._key, None)


class Hooks(dict[int, tuple[Callable[..., Any], bool]]):
    """Hooks in the order they run: key -> (function, whether it takes keyword arguments)."""

    count = 0

    def add(self, hook: Callable[..., Any], prepend: bool, with_kwargs: bool) -> HookHandle:
        """Register ``hook`` at the end, or at the front with ``prepend``."""
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {hook!r}")
        key = self.count = self.count + 1
        later = dict(self) if prepend else {}
        for old in later:
            del self[old]
        self[key] = (hook, with_kwargs)
        self.update(later)
        return HookHandle(self, key)

    def before(
        self, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Inputs and keyword arguments after all hooks that run before ``forward``."""
        for hook, with_kwargs in list(self.values()):
            result = hook(layer, inputs, kwargs) if with_kwargs else hook(layer, inputs)
            if result is None:
                continue
            if with_kwargs:
                inputs, kwargs = result
            else:
                inputs = result if isinstance(result, tuple) else (result,)
        return inputs, kwargs

    def after(self, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> Any:
        """Outputs after all hooks that run after ``forward``."""
        for hook, with_kwargs in list(self.values()):
            result = hook(layer, inputs, kwargs, outputs) if with_kwargs else hook(layer, inputs, outputs)
            if result is not None:
                outputs = result
        return outputs

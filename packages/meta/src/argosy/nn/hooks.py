"""Ordered hooks of a layer, and handles that remove them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["CHANGES", "Changes", "HookHandle", "Hooks"]


class Changes:
    """How often any layer's hooks or its own ``forward`` changed, or the default dtype: who runs layers captured looks
    at them only then."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Count a change."""
        self.count += 1


CHANGES = Changes()


class HookHandle:
    """Removes a registered hook."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: Hooks, key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._hooks.drop(self._key)


class Hooks(dict[int, tuple[Callable[..., Any], bool]]):
    """Hooks in the order they run: key -> (function, whether it takes keyword arguments)."""

    count = 0
    changes = 0
    """How often hooks came or went: captured programs that ran through them are valid while it stands."""
    always: frozenset[int] = frozenset()
    """Keys of the hooks that also run after an exception."""

    def add(self, hook: Callable[..., Any], prepend: bool, with_kwargs: bool, always: bool = False) -> HookHandle:
        """Register ``hook`` at the end, or at the front with ``prepend``."""
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {hook!r}")
        key = self.count = self.count + 1
        self.changes += 1
        CHANGES.count += 1
        if always:
            self.always |= {key}
        later = dict(self) if prepend else {}
        for old in later:
            del self[old]
        self[key] = (hook, with_kwargs)
        self.update(later)
        return HookHandle(self, key)

    def drop(self, key: int) -> None:
        """Take the hook under ``key`` away, if it is still there."""
        if self.pop(key, None) is not None:
            self.changes += 1
            CHANGES.count += 1

    def run_before(
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

    def run_after(self, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> Any:
        """Outputs after all hooks that run after ``forward``.

        When one of them raises, those that always run and have not run yet still do.
        """
        waiting = list(self)
        try:
            while waiting:
                hook, with_kwargs = self[waiting.pop(0)]
                result = hook(layer, inputs, kwargs, outputs) if with_kwargs else hook(layer, inputs, outputs)
                if result is not None:
                    outputs = result
        except Exception:
            self.run_always(layer, inputs, kwargs, outputs, waiting)
            raise
        return outputs

    def run_always(
        self, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any, keys: list[int]
    ) -> None:
        """Run those of the hooks ``keys`` that always run, after an exception: what they return does not count, and
        what they raise is a warning, so that the first exception stays the one that is seen.
        """
        for key in (key for key in keys if key in self.always and key in self):
            hook, with_kwargs = self[key]
            try:
                hook(layer, inputs, kwargs, outputs) if with_kwargs else hook(layer, inputs, outputs)
            except Exception as error:  # noqa: BLE001 - the first exception is on its way
                warnings.warn(f"a hook of {type(layer).__name__} that is always called raised {error!r}", stacklevel=4)

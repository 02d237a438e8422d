"""Devices: which there are, what tensors are made on, and waiting for them."""

import sys
from types import ModuleType
from typing import Any

from argosy.api import lazy_names, targets

__all__ = [name for name in targets(__name__) if name[0] != "_"]
__getattr__, __dir__ = lazy_names(__name__, globals())


class _Callable(ModuleType):
    """``paddle.device("cpu")`` describes a device, though ``paddle.device`` is a module."""

    def __call__(self, type: Any = None, index: int | None = None) -> Any:
        return self.Device(type, index)


sys.modules[__name__].__class__ = _Callable

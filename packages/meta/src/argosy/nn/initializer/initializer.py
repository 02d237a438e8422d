"""The base of initialisers."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import CheckedConstructor
from argosy.nn import lazy
from argosy_tensorcore.tensor import Tensor

__all__ = ["Initializer"]


class Initializer(CheckedConstructor):
    """Fills a parameter in place when called with it; subclasses write :meth:`forward`.

    Called within :class:`argosy.LazyGuard` it only notes the parameter, which ``parameter.initialize()`` fills.
    """

    def __call__(self, param: Tensor, block: object = None) -> Any:
        """Fill ``param``, or have it filled later."""
        if not isinstance(param, Tensor):
            raise TypeError(f"{type(self).__name__}(): argument 'param' must be a Tensor, got {param!r:.80}")
        if lazy.is_lazy():
            lazy.set_init_func(param, self.forward)
            return None
        return self.forward(param, block)

    def forward(self, var: Tensor, block: object = None) -> Any:
        """Fill ``var``; ``block`` is there for Paddle's sake and ignored."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

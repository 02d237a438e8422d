"""Scopes: the tensors of static programs by name. Tensors belong to their programs, so that a scope only finds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from argosy.static.program import default_main_program
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = ["Scope", "global_scope", "scope_guard"]

_KEY = "static.scope"


class Variable:
    """A tensor of a scope."""

    def __init__(self, tensor: Tensor | None = None) -> None:
        self._tensor = tensor

    def get_tensor(self) -> Variable:
        """Itself: it has ``set``, and numpy reads it."""
        return self

    def set(self, value: Any, place: Any = None) -> None:
        """Give it ``value``, of the shape it has. Raises ValueError for another shape."""
        if self._tensor is None:
            self._tensor = Tensor(np.asarray(value))
        else:
            self._tensor.set_value(np.asarray(value))

    def shape(self) -> list[int]:
        """Its sizes."""
        return [] if self._tensor is None else list(self._tensor.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self._tensor is None:
            raise ValueError("a variable of a scope that was given no value has no array")
        return np.array(self._tensor.numpy(), dtype)


class Scope:
    """Variables by name: those made here, then the parameters and states of the main program."""

    def __init__(self) -> None:
        self._own: dict[str, Variable] = {}

    def var(self, name: str) -> Variable:
        """The variable of that name, made where there is none."""
        return self.find_var(name) or self._own.setdefault(name, Variable())

    def find_var(self, name: str) -> Variable | None:
        """The variable of that name, or None."""
        if name in self._own:
            return self._own[name]
        found = default_main_program().persistables().get(name)
        return None if found is None else Variable(found)


def global_scope() -> Scope:
    """The scope of the innermost :func:`scope_guard`, else this rank's own."""
    made: Scope = context().values.setdefault(_KEY, Scope())
    return made


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Let ``scope`` be the global one within the block."""
    if not isinstance(scope, Scope):
        raise TypeError(f"scope_guard() takes a Scope, not {type(scope).__name__}")
    before = global_scope()
    context().values[_KEY] = scope
    try:
        yield
    finally:
        context().values[_KEY] = before

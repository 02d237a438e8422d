"""A few lines of user code each, run in both frameworks: ``script(framework, *tensors, **settings)`` gives results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parity.scripts import averages, containers, draws, members, probability, programs, settings, sparse

__all__ = ["find_script"]


def find_script(name: str) -> Callable[..., Any]:
    """The script of that name in one of the modules beside."""
    found: Callable[..., Any] = next(
        vars(m)[name]
        for m in (programs, members, containers, settings, draws, probability, sparse, averages)
        if name in vars(m)
    )
    return found

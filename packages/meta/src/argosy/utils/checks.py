"""What a script asks before it begins: is a module there, is the version right, does the installation compute."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

from argosy import version

__all__ = ["deprecated", "require_version", "run_check", "try_import"]

P = ParamSpec("P")
R = TypeVar("R")


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """The module of that name. Raises ImportError with ``err_msg``, or with what to install, where there is none."""
    try:
        return import_module(module_name)
    except ImportError as error:
        install = f"try_import(): {module_name} is not there: python -m pip install {module_name.partition('.')[0]}"
        raise ImportError(err_msg or install) from error


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise RuntimeError unless the version of Paddle whose interface this is lies between these, ends included.

    Raises TypeError for what is no text, ValueError for a text that is no version.
    """
    low, own = _parse("min_version", min_version), _parse("own version", version.full_version)
    high = own if max_version is None else _parse("max_version", max_version)
    if not low <= own <= high:
        wanted = f"version at least {min_version}" + ("" if max_version is None else f" and at most {max_version}")
        raise RuntimeError(f"require_version(): {wanted} is wanted; this is the interface of {version.full_version}")


def _parse(name: str, text: str) -> tuple[int, ...]:
    if not isinstance(text, str):
        raise TypeError(f"require_version(): argument {name!r} must be a str, got {type(text).__name__}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise ValueError(f"require_version(): argument {name!r} must be numbers with dots, as '3.1.0', got {text!r}")
    numbers = [int(n) for n in text.split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))


def run_check() -> None:
    """Train a small layer, plain and compiled, and say how it went. Raises RuntimeError where something is wrong."""
    from argosy.cli.check import run_check as check

    if check("cinn"):
        raise RuntimeError("run_check(): the installation does not compute right; what is wrong stands above")


def deprecated(
    update_to: str = "", since: str = "", reason: str = "", level: int = 0
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of functions that go away: calls warn (level 0 and 1) or raise RuntimeError (level 2)."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parts = [f"{function.__module__}.{function.__qualname__} is deprecated"]
        parts += [f" since {since}"] if since else []
        parts += [f"; use {update_to}"] if update_to else []
        parts += [f" ({reason})"] if reason else []
        message = "".join(parts)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if level > 1:
                raise RuntimeError(message)
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        call.__doc__ = f"{message}.\n\n{function.__doc__ or ''}"
        return call

    return decorate

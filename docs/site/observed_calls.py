"""Shapes and dtypes of an operator, as the calls of its example show them, and the same call with other dtypes."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

DTYPES = ("bool", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
MOST = 3


class CallObserver:
    """Keeps what the calls of one function were given and gave, while statements of an example run."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.parameters = list(inspect.signature(function).parameters)
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any, list[str]]] = []

    def rewrite(self, tree: ast.AST) -> ast.AST:
        """``f(x)`` as ``__call__(f)(x)`` wherever something is called."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = ast.copy_location(ast.Name("__call__", ast.Load()), node)
                node.func = ast.copy_location(ast.Call(name, [node.func], []), node.func)
        return tree

    def __call__(self, called: Any) -> Any:
        """``called``, which keeps its calls if it is the observed function or the method of its name."""
        bound = getattr(called, "__self__", None)
        if called is self.function:
            return lambda *args, **kwargs: self._keep(called, args, kwargs)
        if _is_tensor(bound) and called.__name__ == self.function.__name__:
            return lambda *args, **kwargs: self._keep(
                lambda x, *rest, **named: getattr(x, called.__name__)(*rest, **named), (bound, *args), kwargs
            )
        return called

    def _keep(self, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = [_map_tensors(value, _copy) for value in args], {k: _map_tensors(v, _copy) for k, v in kwargs.items()}
        result = called(*args, **kwargs)
        dtypes = [_dtype(x) for x in _tensors(result)]
        self.calls.append((called, tuple(given[0]), given[1], _map_tensors(result, _described), dtypes))
        return result

    def sentences(self) -> Iterator[str]:
        """What the calls show; none without a call."""
        shown = []
        for _, args, kwargs, result, _ in self.calls:
            named = [*zip(self._names(len(args)), args, strict=True), *kwargs.items()]
            operands = [f"`{name}` {_map_tensors(v, _described)}" for name, v in named if list(_tensors(v))]
            text = (" and ".join(operands) + " gives " if operands else "a call gives ") + _text(result)
            if text not in shown:
                shown.append(text)
        if shown:
            yield f"In the example {'; '.join(shown[:MOST])}."
            yield from self._other_dtypes()

    def _names(self, count: int) -> list[str]:
        rest = count - len(self.parameters)
        return [*self.parameters[:count], *([self.parameters[-1]] * rest if self.parameters else [""] * rest)]

    def _other_dtypes(self) -> Iterator[str]:
        """The first call again, its first tensor (and those of the same dtype) in other dtypes."""
        _, args, kwargs, _, _ = self.calls[0]
        first = next(_tensors([*args, *kwargs.values()]), None)
        if first is None:
            return
        found: dict[str, list[str]] = {}
        for dtype in DTYPES:
            found.setdefault(self._result_dtypes(_dtype(first), dtype), []).append(f"`{dtype}`")
        refused = found.pop("", [])
        parts = [f"{' '.join(dtypes)} {'give' if dtypes[1:] else 'gives'} {what}" for what, dtypes in found.items()]
        parts += [f"{' '.join(refused)} {'are' if refused[1:] else 'is'} refused"] if refused else []
        yield f"The same call with other dtypes: {'; '.join(parts)}."

    def _result_dtypes(self, given: str, dtype: str) -> str:
        """What comes back when tensors that are ``given`` are ``dtype``; empty where that is refused."""
        called, args, kwargs, _, before = self.calls[0]

        def cast(x: Any) -> Any:
            return x.astype(dtype) if _dtype(x) == given else _copy(x)

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                args = [_map_tensors(value, cast) for value in args]
                result = called(*args, **{k: _map_tensors(v, cast) for k, v in kwargs.items()})
            except Exception:  # noqa: BLE001 (which is the question)
                return ""
        if any(issubclass(warning.category, np.exceptions.ComplexWarning) for warning in said):
            raise TypeError(f"{self.function.__name__} drops imaginary parts without a word")
        names = zip([_dtype(x) for x in _tensors(result)], [*before, *before], strict=False)
        words = ["the same" if name == dtype and (was == given or len(before) == 1) else name for name, was in names]
        return " and ".join(dict.fromkeys(words)) or type(result).__name__


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "stop_gradient") and hasattr(value, "astype")


def _tensors(value: Any) -> Iterator[Any]:
    if _is_tensor(value):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _map_tensors(value: Any, change: Any) -> Any:
    if _is_tensor(value):
        return change(value)
    if isinstance(value, list | tuple):
        items = [_map_tensors(item, change) for item in value]
        return items if type(value) is list else type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    return value


def _copy(x: Any) -> Any:
    return x.detach().clone()


def _dtype(x: Any) -> str:
    return str(x.dtype).rpartition(".")[2]


class _Described(str):
    __slots__ = ()
    __repr__ = str.__str__


def _described(x: Any) -> str:
    return _Described(f"{_dtype(x)} {list(x.shape)}")


def _text(result: Any) -> str:
    return str(result) if isinstance(result, list | tuple | _Described) else type(result).__name__

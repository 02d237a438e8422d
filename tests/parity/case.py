"""Test cases as plain data: what is called, and with which arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Case", "attribute_of", "call", "distribution", "layer", "optimizer", "schedule", "script", "shape_of", "state",
    "unique",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One use of ``target``, a dotted name under the framework (``nn.functional.relu``, ``Tensor.add_``).

    kind: "call" applies it to ``args`` and ``kwargs``, "shape_of" too but its results count only for what they are;
    "layer" builds it from them and applies it to ``inputs``; "script" runs the function of that name in ``scripts``;
    "distribution" runs one, too, and takes the quantiles of its result; "attribute_of" reads it; "layer_state" and
    "optimizer_state" build it and list what it saves;
    "optimizer" builds it from them and takes steps; "schedule" builds it from them and reads its rates.
    mutates: the first argument is written, and its value afterwards is a result too.
    """

    kind: str
    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    training: bool = True
    mutates: bool = False
    gradients: bool = True

    @property
    def id(self) -> str:
        """The call as text: the key of its record."""
        shown = [_show(a) for a in self.args] + [f"{name}={_show(value)}" for name, value in self.kwargs.items()]
        applied = f"({', '.join(map(_show, self.inputs))})" if self.inputs else ""
        how = " state" if self.kind.endswith("_state") else "" if self.training else " eval"
        return f"{self.target}({', '.join(shown)}){applied}{how}"


def _show(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_show, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def call(target: str, *args: Any, **kwargs: Any) -> Case:
    """``target(*args, **kwargs)``."""
    return Case("call", target, args, kwargs, mutates=target.startswith("Tensor.") and _writes(target[7:]))


def _writes(method: str) -> bool:
    return method == "__setitem__" or (method.endswith("_") and not method.endswith("__"))


def shape_of(target: str, *args: Any, **kwargs: Any) -> Case:
    """``target(*args, **kwargs)``, of which dtypes and shapes count."""
    return Case("shape_of", target, args, kwargs, gradients=False)


def layer(target: str, *inputs: Any, training: bool = True, **kwargs: Any) -> Case:
    """``target(**kwargs)(*inputs)`` with parameters drawn by name, in training or evaluation."""
    return Case("layer", target, (), kwargs, inputs, training)


def script(name: str, *args: Any, **kwargs: Any) -> Case:
    """``scripts.name(framework, *args, **kwargs)``: a few lines of user code."""
    return Case("script", f"scripts.{name}", args, kwargs)


def distribution(name: str, *args: Any, **kwargs: Any) -> Case:
    """The quantiles of what the script draws."""
    return Case("distribution", f"scripts.{name}", args, kwargs, gradients=False)


def optimizer(target: str, **kwargs: Any) -> Case:
    """Steps of ``target(parameters=..., **kwargs)`` on two parameters with drawn gradients."""
    return Case("optimizer", target, (), kwargs)


def schedule(target: str, *args: Any, **kwargs: Any) -> Case:
    """The rates of ``target(*args, **kwargs)``, step after step."""
    return Case("schedule", target, args, kwargs)


def attribute_of(target: str, x: Any) -> Case:
    """The attribute ``target`` (``Tensor.shape``) of ``x``."""
    return Case("attribute_of", target, (x,))


def state(target: str, **kwargs: Any) -> Case:
    """The names, shapes and dtypes that ``target(**kwargs)``, a layer or an optimizer, saves."""
    return Case("optimizer_state" if target.startswith("optimizer.") else "layer_state", target, (), kwargs)


def unique(cases: Iterable[Case]) -> list[Case]:
    """The cases in order. Raises ValueError where two read alike, for their records would."""
    found: dict[str, Case] = {}
    for case in cases:
        if case.id in found:
            raise ValueError(f"two cases read {case.id}")
        found[case.id] = case
    return list(found.values())

"""``to_static`` and its switches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar, overload

import argosy.jit.parts  # noqa: F401  (what runs where a graph breaks)
from argosy.jit.conversion.source import ignored
from argosy.jit.lowering import Backend, ConfiguredBackend
from argosy.jit.properties import StaticProperty
from argosy.jit.static_function import StaticFunction, enabled
from argosy.nn.layer import Layer

__all__ = ["enable_to_static", "ignore_module", "not_to_static", "to_static"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def to_static(
    function: F,
    input_spec: Sequence[Any] | None = None,
    build_strategy: Any = None,
    backend: str | None = "CINN",
    full_graph: bool | None = None,
    property: bool = False,
    memory_budget: int | None = None,
    tune: bool | None = None,
) -> F: ...


@overload
def to_static(
    function: None = None,
    input_spec: Sequence[Any] | None = None,
    build_strategy: Any = None,
    backend: str | None = "CINN",
    full_graph: bool | None = None,
    property: bool = False,
    memory_budget: int | None = None,
    tune: bool | None = None,
) -> Callable[[F], F]: ...


def to_static(
    function: Any = None,
    input_spec: Sequence[Any] | None = None,
    build_strategy: Any = None,
    backend: str | None = "CINN",
    full_graph: bool | None = None,
    property: bool = False,
    memory_budget: int | None = None,
    tune: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Capture a function, a method or a layer's ``forward`` as a program, compile it, and run that from then on.

    function: what to capture; without it, returns a decorator. A Layer is changed and returned.
    input_spec: ``InputSpec`` of the tensors; None for a size makes it a symbol, so that one program serves all sizes.
    backend: the compiler, ``"CINN"`` (the reference interpreter where it is not installed) or None for the reference.
    full_graph: True captures the function whole: ``if``, ``while``, ``for``, ``and``, ``or``, ``not`` on tensors become
    operations, and what cannot be captured raises NotImplementedError naming the line. Otherwise the graph may break:
    where Python needs a value, what is captured so far is executed and Python goes on eagerly; later calls of that kind
    run compiled parts around such lines. ``jit.report()`` lists these places. Control flow that does nothing but set
    local variables is captured then, too; its branches are both run once during the capture.
    Either way later calls skip the Python code, guarded on what it read (see ``argosy.jit.guards``).
    property: the method is none to capture: it runs as Python, and ``jit.save`` writes the value that it returns, which
    the loaded layer's method of that name returns.
    memory_budget: bytes that intermediate values may need: what does not fit is computed again in the backward pass
    instead of being kept, cheapest first, whole layers where that is needed. Results are the same, bit for bit;
    ``explain`` says what it costs, and a warning what is needed at least. None (the default) keeps everything.

    tune: measure how matrix products are cut best, once for a machine (None: where ``ARGOSY_TUNE=1``). Results are the
    same, bit for bit; the first compilation takes longer.

    A captured function may hold a whole training step: ``backward()``, ``optimizer.step()`` and random numbers are
    captured, and states are updated in place.
    Returns the static function, the changed layer, or without ``function`` a decorator.
    """
    if kwargs:
        raise TypeError(f"to_static() has no argument {sorted(kwargs)}")
    if memory_budget is not None and (isinstance(memory_budget, bool) or not isinstance(memory_budget, int)):
        raise TypeError(f"to_static(): memory_budget is a number of bytes, got {memory_budget!r}")
    if input_spec is not None and not isinstance(input_spec, (list, tuple)):
        raise TypeError(f"to_static(): argument 'input_spec' must be a list of InputSpec, got {input_spec!r:.60}")
    if tune is not None and not isinstance(tune, bool):
        raise TypeError(f"to_static(): tune is True, False or None, got {tune!r}")
    chosen: Backend = backend
    if memory_budget is not None or tune is not None:
        chosen = ConfiguredBackend(backend, memory_budget, tune)

    def decorate(target: Any) -> Any:
        if property and not isinstance(target, StaticProperty):
            return _property(target)
        if isinstance(target, Layer):
            target.forward = StaticFunction(target.forward, input_spec, chosen, full_graph)  # type: ignore[method-assign]
            return target
        if isinstance(target, (StaticFunction, StaticProperty)):
            return target
        if not callable(target):
            raise TypeError(f"to_static() takes a function, a method or a Layer, not {type(target).__name__}")
        if getattr(target, "_argosy_not_to_static", False):
            return target
        return StaticFunction(target, input_spec, chosen, full_graph)

    return decorate if function is None else decorate(function)


def _property(target: Any) -> StaticProperty:
    if isinstance(target, Layer) or not callable(target):
        raise TypeError(f"to_static(property=True) takes a method, not {type(target).__name__}")
    return StaticProperty(target)


@overload
def not_to_static(func: F) -> F: ...


@overload
def not_to_static(func: None = None) -> Callable[[F], F]: ...


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """Mark ``func`` so that :func:`to_static` leaves it as it is. Returns ``func``, or a decorator without it."""
    if func is None:
        return not_to_static
    if not callable(func):
        raise TypeError(f"not_to_static(): argument 'func' must be a function, got {func!r:.80}")
    func._argosy_not_to_static = True  # type: ignore[attr-defined]
    return func


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Run captured functions as plain Python (False), or captured again (True)."""
    enabled.on = bool(enable_to_static_bool)


def ignore_module(modules: Sequence[Any]) -> None:
    """Do not rewrite functions of these modules during captures; they are run as they are. Raises TypeError for what is
    no module.
    """
    for module in modules:
        if not isinstance(module, ModuleType):
            raise TypeError(f"ignore_module() takes a list of modules, found {type(module).__name__} {module!r:.60}")
        ignored.add(module.__name__)

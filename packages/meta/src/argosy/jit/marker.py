"""Marks of functions and layers for captures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from argosy.jit.decorate import not_to_static
from argosy.nn.layer import Layer
from argosy_phi_ops.capture.tracer import active_tracer

__all__ = ["capture_control_flow", "dynamic_dims", "force_dynamic", "not_to_static", "unified"]


def unified(fn: Any = None, *, for_sot: bool = True, for_ast: bool = True) -> Any:
    """Mark a function as one whose source needs no rewriting. A layer, whose forward function is rewritten only where
    control flow depends on tensors, is left as it is; so is a function that ``for_ast`` does not mean."""
    if fn is None:
        return partial(unified, for_sot=for_sot, for_ast=for_ast)
    return fn if isinstance(fn, type) or not for_ast else not_to_static(fn)


def capture_control_flow(fn: Any = None) -> Any:
    """Mark a function whose control flow is to be captured, as it always is here."""
    return capture_control_flow if fn is None else fn


def force_dynamic(fn: Any) -> Any:
    """Let a function, or the forward function of a class of layers, break the graph: Python runs it. With
    ``full_graph=True`` its call is an error that names it."""
    if isinstance(fn, type) and issubclass(fn, Layer):
        fn.forward = _break_at(fn.forward)  # type: ignore[method-assign]
        return fn
    if isinstance(fn, type) or not callable(fn):
        raise TypeError(f"force_dynamic(): argument 'fn' must be a function or a class of layers, got {fn!r:.80}")
    return _break_at(fn)


def _break_at(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        tracer = active_tracer()
        if tracer is not None:
            tracer.settle(f"{function.__qualname__} is marked force_dynamic")
        return function(*args, **kwargs)

    made: Callable[..., Any] = not_to_static(run)
    return made


def dynamic_dims(tensor: Any, dims: Any) -> None:
    """Raises NotImplementedError: sizes are left open by an ``input_spec``."""
    raise NotImplementedError(
        "jit.marker.dynamic_dims is not implemented: to_static(input_spec=[InputSpec([None, 8])]) leaves sizes open"
    )

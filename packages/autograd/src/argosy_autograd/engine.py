"""What users call: ``backward`` and ``grad``, which go back over the tape (`sweep`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, overload

import numpy as np

from argosy_autograd import anomaly
from argosy_autograd.errors import unused_gradient
from argosy_autograd.sweep import Sweep
from argosy_autograd.tape import Edge, Node, ZeroNode, edge_of
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["backward", "dependence", "grad", "needed_nodes"]

Tensors = Tensor | Sequence[Tensor]


def _release(ends: Sequence[Edge]) -> None:
    """Free the graph before ``ends``."""
    stack = [node for node, _ in ends]
    while stack:
        node = stack.pop()
        if type(node) is not Tensor and node.edges is not None:
            stack.extend(edge[0] for edge in node.edges if edge is not None)
            node.release()


def _refuse_dump(function: str, path: str | None) -> None:
    if path is not None:
        raise NotImplementedError(f"{function}: drawing the graph (dump_backward_graph_path) is not implemented")


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
    *,
    dump_backward_graph_path: str | None = None,
) -> None:
    """Add the gradients of ``tensors``, weighted with ``grad_tensors`` (ones by default), to ``.grad`` of the
    leaves that they depend on. The graph is freed unless ``retain_graph``.

    While capturing, a gradient request is recorded instead. Tensors that depend on nothing that wants a gradient give
    none, without an error, as in Paddle. Raises :class:`DifferentiationError` for a graph already freed, or a tensor
    that the gradient needs and that was changed in place.
    """
    _refuse_dump("backward", dump_backward_graph_path)
    ends = _as_list(tensors)
    seeds = _as_list(grad_tensors) if grad_tensors is not None else [None] * len(ends)
    _check_seeds("backward", ends, seeds)
    tracer = active_tracer()
    if tracer is not None and not _tracing_module().end_capture_for_gradients(tracer, ends):
        _tracing_module().traced_backward(ends, seeds)
        return
    roots = [(edge, y, g) for y, g in zip(ends, seeds, strict=True) if (edge := edge_of(y)) is not None]
    if not roots:
        return
    previous = set_grad_enabled(False)
    try:
        nested = sys.modules.get("argosy_autograd.nested_gradients")
        if nested is not None and grad_tensors is None and nested.run_nested_backward(ends):
            if not retain_graph:
                _release([edge for edge, _, _ in roots])
            return
        sweep = Sweep(recorded=False, retain=retain_graph)
        sweep.run([(edge, sweep.start(y, g)) for edge, y, g in roots])
        sweep.finish_leaves()
    except Exception as error:
        anomaly.annotate_error(ends, error)
        raise
    finally:
        set_grad_enabled(previous)


@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] = False,
    no_grad_vars: Tensor | Sequence[Tensor] | None = None,
    *,
    dump_backward_graph_path: str | None = None,
) -> list[Tensor]: ...


@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Tensor | Sequence[Tensor] | None = None,
    *,
    dump_backward_graph_path: str | None = None,
) -> list[Tensor | None]: ...


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Tensor | Sequence[Tensor] | None = None,
    *,
    dump_backward_graph_path: str | None = None,
) -> list[Tensor] | list[Tensor | None]:
    """Gradients of ``outputs``, weighted with ``grad_outputs`` (ones by default), with respect to ``inputs``.

    ``.grad`` is left alone. ``retain_graph`` is ``create_graph`` by default; with ``create_graph`` the results
    can be differentiated again. ``no_grad_vars`` count as constants. An input that the outputs do not depend on
    gives None with ``allow_unused``, else raises :class:`UnusedInput`.
    """
    if not only_inputs:
        raise NotImplementedError("grad(only_inputs=False) is not implemented, nor is it in Paddle")
    _refuse_dump("grad", dump_backward_graph_path)
    _check_flags("grad()", retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused)
    ends, wanted = _as_list(outputs), _as_list(inputs)
    _check_tensors("grad()", outputs=ends, inputs=wanted)
    seeds = _as_list(grad_outputs) if grad_outputs is not None else [None] * len(ends)
    constants = [] if no_grad_vars is None else _as_list(no_grad_vars)
    _check_seeds("grad", ends, seeds)
    if active_tracer() is not None:
        found: list[Tensor | None] = _tracing_module().traced_grad(
            ends, wanted, seeds, create_graph, allow_unused, constants
        )
        return found
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        anomaly.count_derivatives()
    previous = set_grad_enabled(create_graph)
    try:
        made = _grad(ends, wanted, seeds, retain, create_graph, allow_unused, constants)
    except Exception as error:
        anomaly.annotate_error(ends, error)
        raise
    finally:
        set_grad_enabled(previous)
    anomaly.note_gradients(ends, made, create_graph)
    return made


def _check_flags(function: str, **flags: object) -> None:
    for name, flag in flags.items():
        if flag not in (True, False, None):
            raise TypeError(f"{function}: argument {name!r} must be a bool, got {flag!r:.60}")


def _check_tensors(function: str, **given: list[Any]) -> None:
    for name, values in given.items():
        for x in values:
            if not isinstance(x, Tensor):
                raise TypeError(f"{function}: argument {name!r} must hold Tensors, got {x!r:.60}")


def dependence(y: Tensor, x: Tensor) -> tuple[bool, str, str]:
    """Whether ``y`` depends on ``x`` differentiably; if not, what was asked for and which operation is in the way."""
    if active_tracer() is not None:
        traced: tuple[bool, str, str] = _tracing_module().traced_dependence(y, x)
        return traced
    end, source = edge_of(y), edge_of(x)
    if end is not None and source is not None and source in needed_nodes([end], {source: 0}, frozenset())[1]:
        return True, "", ""
    return False, anomaly.describe_request([y]), anomaly.reasons([y], x)


def _grad(
    ends: Sequence[Tensor],
    wanted: Sequence[Tensor],
    seeds: Sequence[Tensor | None],
    retain: bool,
    recorded: bool,
    allow_unused: bool,
    constants: Sequence[Tensor],
) -> list[Tensor | None]:
    blocked = frozenset(edge for x in constants if (edge := edge_of(x)) is not None)
    targets = {edge: i for i, x in enumerate(wanted) if (edge := edge_of(x)) is not None and edge not in blocked}
    roots = [(edge, y, g) for y, g in zip(ends, seeds, strict=True) if (edge := edge_of(y)) is not None]
    between, reached = needed_nodes([edge for edge, _, _ in roots], targets, blocked)

    def plainly() -> list[Tensor | None]:
        sweep = Sweep(recorded, retain, targets, between, blocked)
        sweep.run([(edge, sweep.start(y, g)) for edge, y, g in roots])
        sweep.finish_leaves()
        return [_result(sweep, x, reached, [edge for edge, _, _ in roots]) for x in wanted]

    for i, x in enumerate(wanted):
        if edge_of(x) not in reached and not allow_unused:
            raise unused_gradient(i, x, anomaly.describe_request(ends), anomaly.reasons(ends, x), x.name)
    if not (recorded and retain) or blocked or len(reached) < len(wanted):
        return plainly()
    found: list[Tensor | None] = _nest().recorded_gradients(ends, wanted, seeds, plainly)
    return found


def _result(sweep: Sweep, x: Tensor, reached: set[Edge], roots: Sequence[Edge]) -> Tensor | None:
    """What the pass from ``roots`` found for ``x``; None where the outputs do not depend on it."""
    edge = edge_of(x)
    if edge is None or edge not in reached:
        return None
    assert sweep.targets is not None
    found: Any = sweep.found.get(sweep.targets[edge])
    if found is None:
        found = np.zeros(x.payload.shape, x.payload.dtype.numpy)
        if sweep.recorded:
            found = Tensor._wrap(StridedArray(found), False)
            ZeroNode("zero", roots, [found])
    return found if type(found) is Tensor else Tensor._wrap(StridedArray.from_array(found))


def needed_nodes(
    roots: Sequence[Edge], targets: dict[Edge, int], blocked: frozenset[Edge]
) -> tuple[set[Node], set[Edge]]:
    """The nodes between the roots and the targets, and the targets that can be reached."""
    reached: set[Edge] = set()
    seen: dict[Node, None] = {}
    places: set[Edge] = set()
    stack: list[Edge] = list(roots)
    while stack:
        edge = stack.pop()
        if edge in blocked or edge in places:
            continue
        places.add(edge)
        if edge in targets:
            reached.add(edge)
        node, slot = edge
        if type(node) is Tensor:
            continue
        seen[node] = None
        node.check_alive()
        stack.extend(onward for onward in node.onward(slot) if onward is not None)
    between: set[Node] = set()
    for node in sorted(seen, key=lambda n: n.sequence):
        onwards = [edge for edge in node.edges or () if edge is not None and edge not in blocked]
        if any(edge in reached or edge[0] in between for edge in onwards):
            between.add(node)
    return between, reached


def _tracing_module() -> Any:
    return import_module("argosy_autograd.tracing")


def _nest() -> Any:
    return import_module("argosy_autograd.nested_gradients")


def _as_list(tensors: Any) -> list[Any]:
    if type(tensors) is not Tensor and not hasattr(type(tensors), "__iter__"):
        raise TypeError(
            f"argument 'outputs' or 'tensors' must be a Tensor or a sequence of Tensors, got {tensors!r:.60}"
        )
    return [tensors] if type(tensors) is Tensor else list(tensors)


def _check_seeds(name: str, ends: Sequence[Any], seeds: Sequence[Any]) -> None:
    for y in ends:
        if type(y) is not Tensor:
            raise TypeError(f"{name}() takes tensors, got {type(y).__name__}")
    if len(ends) != len(seeds):
        raise ValueError(f"{name}() got {len(ends)} outputs but {len(seeds)} gradients of them")
    for y, g in zip(ends, seeds, strict=True):
        if g is not None and g.payload.shape != y.payload.shape and tuple(g.payload.shape) != tuple(y.payload.shape):
            raise ValueError(
                f"{name}(): the gradient of an output of shape {list(y.shape)} was given with shape {list(g.shape)}"
            )

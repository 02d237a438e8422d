"""Branches, loops and optional inputs. Loops whose steps can be counted when the program is made are written out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from argosy_infer.errors import ProgramFileError
from argosy_infer.onnx.capture import Node
from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import is_known, phi, prim, shape_of, tensor_of
from argosy_phi_ops.capture.regions import RecordedRegion, insertion_at, record, settle_draws
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.user_line import user_location
from argosy_pir.core import Region
from argosy_pir.values import Value
from argosy_tensorcore.interchange import to_numpy

_MOST = 1024  # steps


def _truth(x: Any) -> bool:
    return bool(to_numpy(x).reshape(-1)[0])


@onnx_operator("If", folds=False)
def if_(condition: Any, *, then_branch: Any, else_branch: Any, node: Node) -> Any:
    """One of two graphs, chosen by a run, or when the program is made where the condition is known then."""
    if is_known(node.value(0)):
        return node.run(then_branch if _truth(node.value(0)) else else_branch)
    tracer = _tracer()
    holds = tracer.value(phi.reshape(condition, []))
    try:
        sides = [record(tracer, (), partial(_run, node, graph)) for graph in (then_branch, else_branch)]
    except ProgramFileError as misfit:
        raise node.unknown(0, f"{misfit}. That is no error of a branch that is not taken, but ") from misfit
    ends = [_ends(tracer, side, side.result, node) for side in sides]
    for x, y in zip(*ends, strict=True):
        if x.type != y.type:
            raise NotImplementedError(f"branches that give {x.type} and {y.type}")
    settle_draws(tracer, sides)
    regions = [Region([side.finish("control.yield", values)]) for side, values in zip(sides, ends, strict=True)]
    made = tracer.builder.create("control.if", [holds], regions=regions, location=user_location())
    return [tracer.wrap(value) for value in made.results]


def _run(node: Node, graph: Any, _: Sequence[Value]) -> list[Any]:
    return node.run(graph)


def _tracer() -> Tracer:
    found = active_tracer()
    assert found is not None, "control flow is recorded, never folded"
    return found


def _ends(tracer: Tracer, side: RecordedRegion, results: Sequence[Any], node: Node) -> list[Value]:
    """What a region ends with."""
    with insertion_at(tracer, side.block):
        return [tracer.value(node.operand(x)) for x in results]


@onnx_operator("Loop", folds=False)
def loop(count: Any = None, condition: Any = None, *carried: Any, body: Any, node: Node) -> Any:
    """A graph of (step, condition, carried) again and again: what is carried last, and what each step gave, stacked.

    Where nothing is stacked, a run may decide how often.
    """
    stacks = len(body.output) - 1 - len(carried)
    given = [x for x in (node.value(0), node.value(1)) if x is not None]
    if not stacks and not all(map(is_known, given)):
        return _staged_loop(count, condition, carried, body, node)
    steps = _MOST + 1 if count is None else int(node.known(0).reshape(-1)[0])
    states = [node.value(i + 2) for i in range(len(carried))]
    goes_on = tensor_of(True) if condition is None else tensor_of(node.known(1))
    stacked: list[list[Any]] = [[] for _ in range(stacks)]
    for i in range(steps):
        if not is_known(goes_on):
            if stacks:
                raise NotImplementedError("results stacked by steps whose number a run decides")
            return _staged_loop(count, condition, carried, body, node)
        if not _truth(goes_on):
            break
        if i == _MOST:
            raise NotImplementedError(f"{i} steps, as many as are written out, and more")
        goes_on, *results = node.run(body, [tensor_of(i), goes_on, *states])
        states = results[: len(states)]
        for parts, part in zip(stacked, results[len(states) :], strict=True):
            parts.append(part)
    if not all(stacked):
        raise NotImplementedError("a loop without a step, which has nothing to stack")
    return [*states, *(phi.stack(parts, 0) for parts in stacked)]


def _staged_loop(count: Any, condition: Any, carried: Sequence[Any], body: Any, node: Node) -> list[Any]:
    """A loop whose end a run decides."""
    tracer = _tracer()
    goes_on = phi.full([], True, "bool") if condition is None else phi.reshape(condition, [])
    limit = None if count is None else phi.reshape(prim.cast(count, dtype="int64"), [])
    starts = [tracer.value(x) for x in (phi.full([], 0, "int64"), goes_on, *carried)]
    types = [value.type for value in starts]

    def test(arguments: Sequence[Value]) -> Any:
        i, holds, *_ = map(tracer.wrap, arguments)
        return [holds if limit is None else prim.logical_and(holds, prim.lt(i, limit))]

    def step(arguments: Sequence[Value]) -> list[Any]:
        i, holds, *states = map(tracer.wrap, arguments)
        holds, *results = node.run(body, [i, holds, *states])
        return [i + 1, phi.reshape(node.operand(holds), []), *results]

    tests, steps = record(tracer, types, test), record(tracer, types, step)
    ends = _ends(tracer, steps, steps.result, node)
    for before, after in zip(types, ends, strict=True):
        if before != after.type:
            raise NotImplementedError(f"a loop that carries {before} into a step and {after.type} out of it")
    holds = _ends(tracer, tests, tests.result, node)
    regions = [
        Region([tests.finish("control.condition", holds)]),
        Region([steps.finish("control.yield", ends)]),
    ]
    made = tracer.builder.create("control.while", starts, regions=regions, location=user_location())
    return [tracer.wrap(value) for value in made.results[2:]]


@onnx_operator("Scan", since=9, folds=False)
def scan(
    *xs: Any,
    body: Any,
    num_scan_inputs: int,
    node: Node,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> Any:
    """A graph of (carried, slices) along axes: what is carried last, and what each step gave, stacked."""
    count = len(xs) - num_scan_inputs
    states, sequences = list(xs[:count]), xs[count:]
    axes = [a % len(shape_of(x)) for a, x in zip(scan_input_axes or [0] * len(sequences), sequences, strict=True)]
    turned = scan_input_directions or [0] * len(sequences)
    steps = shape_of(sequences[0])[axes[0]]
    if not isinstance(steps, int) or not 0 < steps <= _MOST:
        raise NotImplementedError(f"{steps} steps; 1 to {_MOST} are written out")
    stacked: list[list[Any]] = [[] for _ in body.output[count:]]
    for i in range(steps):
        slices = [_step(x, a, steps - 1 - i if t else i) for x, a, t in zip(sequences, axes, turned, strict=True)]
        results = node.run(body, [*states, *slices])
        states = results[:count]
        for parts, part in zip(stacked, results[count:], strict=True):
            parts.append(part)
    backward = scan_output_directions or [0] * len(stacked)
    along = scan_output_axes or [0] * len(stacked)
    outputs = [phi.stack(p[::-1] if t else p, a) for p, t, a in zip(stacked, backward, along, strict=True)]
    return [*states, *outputs]


@onnx_operator("Scan", since=8, folds=False)
def scan_of_batches(lengths: Any, *xs: Any, body: Any, num_scan_inputs: int, node: Node, directions: Any = None) -> Any:
    """As :func:`scan`, of each sample of a first axis by itself."""
    if lengths is not None:
        raise NotImplementedError("Scan with sequence_lens")
    samples = [
        scan(
            *(_step(x, 0, i) for x in xs), body=body, num_scan_inputs=num_scan_inputs, node=node,
            scan_input_directions=directions,
        )
        for i in range(shape_of(xs[0])[0])
    ]  # fmt: skip
    return [phi.stack(list(parts), 0) for parts in zip(*samples, strict=True)]


def _step(x: Any, axis: int, i: int) -> Any:
    return phi.squeeze(phi.slice(x, [axis], [i], [i + 1]), axis)


@onnx_operator("OptionalHasElement")
def optional_has_element(x: Any = None) -> Any:
    """Whether there is an input."""
    return tensor_of(x is not None)


@onnx_operator("OptionalGetElement")
def optional_get_element(x: Any) -> Any:
    """What an optional holds: there are none without."""
    return x

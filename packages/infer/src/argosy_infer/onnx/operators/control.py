"""Branches, loops and optional inputs. Loops whose steps can be counted when the program is made are written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_infer.onnx.capture import Node
from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import is_known, phi, prim, shape_of, tensor_of
from argosy_tensorcore.interchange import to_numpy

_MOST = 1024  # steps


def _truth(x: Any) -> bool:
    return bool(to_numpy(x).reshape(-1)[0])


@onnx_operator("If", folds=False)
def if_(condition: Any, *, then_branch: Any, else_branch: Any, node: Node) -> Any:
    """One of two graphs. Where only a run knows the condition, both are computed, and results of equal types chosen."""
    if is_known(node.value(0)):
        return node.run(then_branch if _truth(node.value(0)) else else_branch)
    found = []
    for x, y in zip(node.run(then_branch), node.run(else_branch), strict=True):
        if shape_of(x) != shape_of(y) or x.payload.dtype is not y.payload.dtype:
            raise NotImplementedError(f"branches that give {list(shape_of(x))} and {list(shape_of(y))}")
        found.append(prim.select(phi.reshape(condition, []), x, y))
    return found


@onnx_operator("Loop", folds=False)
def loop(count: Any = None, condition: Any = None, *carried: Any, body: Any, node: Node) -> Any:
    """A graph of (step, condition, carried) again and again: what is carried last, and what each step gave, stacked."""
    steps = _MOST if count is None else int(node.known(0).reshape(-1)[0])
    if steps > _MOST:
        raise NotImplementedError(f"{steps} steps; {_MOST} are the most that are written out")
    states = [node.value(i + 2) for i in range(len(carried))]
    condition = tensor_of(True) if condition is None else tensor_of(node.known(1))
    stacked: list[list[Any]] = [[] for _ in body.output[1 + len(states) :]]
    for i in range(steps):
        if not is_known(condition):
            raise NotImplementedError("a condition that depends on what the program is given")
        if not _truth(condition):
            break
        condition, *results = node.run(body, [tensor_of(i), condition, *states])
        states = results[: len(states)]
        for parts, part in zip(stacked, results[len(states) :], strict=True):
            parts.append(part)
    else:
        if count is None:
            raise NotImplementedError(f"more than {_MOST} steps")
    if not all(stacked):
        raise NotImplementedError("a loop without a step, which has nothing to stack")
    return [*states, *(phi.stack(parts, 0) for parts in stacked)]


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

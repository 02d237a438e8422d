"""Gradients while capturing: nothing is computed, a request ``ad.gradient`` is recorded for the pass
``expand-gradients``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from argosy_autograd.activity import differentiable_sources, has_gradient, has_no_derivative, postorder, read_values
from argosy_autograd.algebra import constant_number, zeros_like
from argosy_autograd.dependence import moving_targets
from argosy_autograd.dialect import custom_parts, parts
from argosy_autograd.errors import DifferentiationError, asked_for, constant_gradient, unused_gradient
from argosy_autograd.gradients import is_symbolic_zero
from argosy_autograd.hooks import JointHook
from argosy_autograd.modes import linear, no_grad
from argosy_autograd.registry import NOT_APPLICABLE
from argosy_phi_ops import prim
from argosy_phi_ops.capture.regions import unbroken
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer, active_tracer
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import CaptureError
from argosy_phi_ops.user_line import user_location
from argosy_pir import Block, Builder, Operation, Region, Value
from argosy_pir.values import OpResult
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "end_capture_for_gradients",
    "traced_backward",
    "traced_custom",
    "traced_dependence",
    "traced_grad",
    "traced_hook",
    "traced_refusal",
]


def traced_backward(ends: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> None:
    """Record the request for the gradients of all leaves that ``ends`` depend on, and put them in their slots."""
    tracer = _tracer()
    outputs = [tracer.value(y) for y in ends]
    leaves = list(_leaves(tracer))
    reached = _reach(outputs, {value for _, value in leaves})
    chosen = [(leaf, value) for leaf, value in leaves if value in reached]
    if not chosen:
        return
    made = _request(tracer, outputs, [value for _, value in chosen], seeds)
    with no_grad():
        found = [_run_hooks(leaf, _constant(tracer, g)) for (leaf, _), g in zip(chosen, made, strict=True)]
        _call_joint([leaf for leaf, _ in chosen], found)
        for (leaf, _), g in zip(chosen, found, strict=True):
            if g is not None:
                _accumulate(tracer, leaf, g)


def end_capture_for_gradients(tracer: Tracer, ends: Sequence[Tensor]) -> bool:
    """End a capture that may break where gradients of ``ends`` go on through tensors made before it: what follows, an
    optimizer's step say, reads gradients that the program could not have yet. All tensors are concrete then."""
    if not tracer.breaks or tracer.journals:
        return False
    older = [x.payload.value for x, given in zip(tracer.inputs, tracer.given, strict=False) if given._node is not None]
    if not older or not _reach([tracer.value(y) for y in ends], set(older)):
        return False
    tracer.give_up("backward() of what was computed before the capture")  # type: ignore[attr-defined]  # it breaks
    return True


def traced_grad(
    ends: Sequence[Tensor],
    wanted: Sequence[Tensor],
    seeds: Sequence[Tensor | None],
    create_graph: bool,
    allow_unused: bool,
    constants: Sequence[Tensor],
) -> list[Tensor | None]:
    """Record the request for the gradients of ``ends`` with respect to ``wanted``."""
    tracer = _tracer()
    outputs = [tracer.value(y) for y in ends]
    values = [tracer.value(x) for x in wanted]
    blockers = [tracer.value(x) for x in constants]
    reached = _reach(outputs, {v for v, x in zip(values, wanted, strict=True) if not x.stop_gradient}, blockers)
    for i, (x, value) in enumerate(zip(wanted, values, strict=True)):
        if value not in reached and not allow_unused:
            asked = asked_for(1 + _order(outputs))
            raise unused_gradient(i, x, asked, _in_the_way(outputs, value))
    chosen = [v for v in values if v in reached]
    if linear.get():
        _check_linear(outputs, chosen)
    found = dict(zip(chosen, _request(tracer, outputs, chosen, seeds, blockers), strict=True)) if chosen else {}
    wrap = _differentiable_tensor if create_graph else _constant
    return [wrap(tracer, found[v]) if v in found else None for v in values]


def _check_linear(outputs: Sequence[Value], wrt: Sequence[Value]) -> None:
    """Raise where a derivative of the user's own between ``wrt`` and ``outputs`` does not move with what it takes."""
    moved = set(wrt)
    for op in postorder(outputs, None):
        if moved.isdisjoint(read_values(op)):
            continue
        moved.update(op.results)
        if op.name != "ad.custom" or "refusal" in op.attributes:
            continue
        block = op.regions[0].block
        assert block.last is not None
        for g in block.last.operands:
            if not _is_zero(g) and differentiable_sources(g).isdisjoint(block.arguments):
                raise constant_gradient(f"a PyLayer or a hook ({op.location})", asked_for(1 + _order(outputs)))


def _is_zero(g: Value) -> bool:
    while isinstance(g, OpResult) and g.op.name == "prim.stop_gradient":
        g = g.op.operand(0)
    return constant_number(g) == 0 or (isinstance(g, OpResult) and g.op.name == "phi.zeros_like")


def traced_dependence(y: Tensor, x: Tensor) -> tuple[bool, str, str]:
    """Whether ``y`` depends on ``x`` differentiably, else what was asked for and which operation is in the way."""
    tracer = _tracer()
    end, source = tracer.value(y), tracer.value(x)
    if not y.stop_gradient and source in _reach([end], {source}):
        return True, "", ""
    return False, asked_for(1 + _order([end])), _in_the_way([end], source)


def traced_custom(
    tracer: Tracer,
    outputs: Sequence[Value],
    inputs: Sequence[Value],
    backward: Callable[[list[Tensor]], Sequence[Tensor | None]],
) -> Sequence[Value]:
    """Record ``outputs`` with a derivative of their own: ``backward`` is traced once, with abstract cotangents of the
    differentiable outputs, and gives one gradient (or None) for each differentiable input. Raises GraphBreak where it
    needs a value."""
    block = Block([v.type for v in outputs if has_gradient(v)])
    outer, tracer.builder = tracer.builder, Builder.at_end(block)
    try:
        with unbroken(tracer), emit_at(tracer.builder) as inner:
            made = backward([_differentiable_tensor(tracer, g) for g in block.arguments])
            wanted = [x for x in inputs if has_gradient(x)]
            values = [zeros_like(x) if g is None else _gradient(tracer, g) for g, x in zip(made, wanted, strict=True)]
            inner.create("control.yield", values)
    finally:
        tracer.builder = outer
    attributes = {"outputs": len(outputs)}
    return outer.create(
        "ad.custom", [*outputs, *inputs], attributes, regions=[Region([block])], location=user_location()
    ).results


def _gradient(tracer: Tracer, g: Tensor) -> Value:
    """The value of a gradient that a user's code gave: what it cut off is a constant."""
    value = tracer.value(g)
    return prim.stop_gradient(value) if g.stop_gradient and has_gradient(value) else value


def traced_refusal(values: Sequence[Tensor], reason: str, inputs: Sequence[Value] | None = None) -> list[Tensor]:
    """``values``, whose derivatives nobody gets: who asks for one, by the values themselves or by the ``inputs`` that
    they were made of, gets a :class:`MissingRule` with ``reason``."""
    tracer = _tracer()
    made = [tracer.value(x) for x in values]
    block = Block([v.type for v in made])
    Builder.at_end(block).create("control.yield", block.arguments)
    attributes = {"outputs": len(made), "refusal": reason}
    op = tracer.builder.create(
        "ad.custom",
        [*made, *(made if inputs is None else inputs)],
        attributes,
        regions=[Region([block])],
        location=user_location(),
    )
    return [_differentiable_tensor(tracer, v) for v in op.results]


def traced_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> bool:
    """Let the gradient of a traced tensor that is no leaf go through ``hook``. False where that cannot be captured and
    the graph broke instead: the tensor is concrete then."""
    tracer = tensor.payload.tracer
    try:
        _hook(tensor.payload, hook)
    except (CaptureError, NotImplementedError) as error:
        if not tracer.breaks or tracer.journals:
            raise
        tracer.give_up(f"register_hook: {error}")
        return False
    return True


def _hook(payload: TracedPayload, hook: Callable[[Tensor], Tensor | None]) -> None:
    if payload.value.has_uses:
        raise NotImplementedError(
            "register_hook on a tensor that was used already, while capturing, is not implemented: register the hook "
            "right after the tensor is made"
        )

    def backward(cotangents: list[Tensor]) -> list[Tensor]:
        replaced = hook(cotangents[0])
        return [cotangents[0] if replaced is None else replaced]

    (payload.value,) = traced_custom(payload.tracer, [payload.value], [payload.value], backward)


def _tracer() -> Tracer:
    tracer = active_tracer()
    if tracer is None:
        raise DifferentiationError("no capture is active")
    return tracer


def _leaves(tracer: Tracer) -> Iterable[tuple[Tensor, Value]]:
    """Tensors that want gradients and the values they have had: concrete ones that were read, and traced inputs."""
    yield from tracer.leaves()
    for x in tracer.inputs:
        if not x.stop_gradient:
            yield x, x.payload.value


def _reach(outputs: Sequence[Value], wrt: set[Value], blockers: Sequence[Value] = ()) -> set[Value]:
    """Those of ``wrt`` that the outputs depend on through differentiable values; stop_gradient is a blocker. What a
    gradient reads is no dependence yet: whether it moves with it, its structure tells."""
    found, through_gradients = _reached_inputs(outputs, wrt, blockers)
    if not found or not through_gradients:
        return found
    return moving_targets(outputs, found, blockers, [value for _, value in _leaves(_tracer())])


def _reached_inputs(outputs: Sequence[Value], wrt: set[Value], blockers: Sequence[Value]) -> tuple[set[Value], bool]:
    """Those of ``wrt`` that the outputs read through differentiable values, and whether gradients are on the way. A
    derivative of the user's own goes on to its inputs alone; the derivative of one goes on to what it reads, too."""
    found: set[Value] = set()
    barred = {(v, nested) for v in blockers for nested in (False, True)}
    seen = set(barred)
    stack = [(v, False) for v in outputs if has_gradient(v)]
    while stack:
        place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        value, nested = place
        if value in wrt:
            found.add(value)
        if isinstance(value, OpResult) and not has_no_derivative(value.op):
            nested = nested or value.op.name == "ad.gradient"
            own = value.op.name == "ad.custom" and not nested
            onward = custom_parts(value.op)[1] if own else read_values(value.op)
            stack.extend((v, nested) for v in onward if has_gradient(v))
    return found, any(nested for _, nested in seen.difference(barred))


def _in_the_way(outputs: Sequence[Value], target: Value) -> str:
    """Which operation it is that keeps ``outputs`` from depending on ``target``; else which made them."""
    blocker = _blocker(outputs, target)
    made = [f"{v.op.kind} ({v.op.location})" for v in outputs if isinstance(v, OpResult)]
    others = f"they were made by {', '.join(made[:_MOST_NAMES])} from other tensors" if made else ""
    return f"on the way, {blocker}" if blocker else _describe_constant_gradients(outputs, target) or others


def _blocker(outputs: Sequence[Value], target: Value) -> str:
    """Which operation between ``target`` and the outputs, the one nearest to the outputs, lets no gradient pass."""
    came_from: dict[Value, Value | None] = dict.fromkeys(outputs)
    stack = list(outputs)
    while stack and target not in came_from:
        value = stack.pop()
        if isinstance(value, OpResult):
            new = [v for v in read_values(value.op) if v not in came_from]
            came_from.update(dict.fromkeys(new, value))
            stack.extend(new)
    found = ""
    at = came_from.get(target)
    while at is not None:
        assert isinstance(at, OpResult)
        name = at.op.kind
        if name in NOT_APPLICABLE or not has_gradient(at):
            reason = NOT_APPLICABLE.get(name, f"gives {at.dtype}, which has no derivative")
            found = f"{name} ({at.op.location}) {reason}"
        at = came_from[at]
    return found


def _describe_constant_gradients(outputs: Sequence[Value], target: Value) -> str:
    """Which gradients read ``target`` without moving with it, what they are of, and of what order they are."""
    found = []
    for op in postorder(outputs, None):
        if op.name != "ad.gradient" or target not in _reached_inputs(parts(op)[0], {target}, ())[0]:
            continue
        between = [o for o in postorder(parts(op)[0], None) if target in _reached_inputs(o.results, {target}, ())[0]]
        names = [f"{o.kind} ({o.location})" for o in between if o.name != "ad.gradient"][:_MOST_NAMES]
        order = _order(op.results)
        found.append(
            f"on the way, the derivative of order {order} ({op.location}) does not move with it, so that there is none "
            f"of order {order + 1}: what it is a derivative of is linear or flat in it, see {', '.join(names)}"
        )
    return found[-1] if found else ""


_MOST_NAMES = 4


def _order(values: Sequence[Value]) -> int:
    """How many gradients, one of the other, ``values`` are."""
    orders: dict[Operation, int] = {}
    for op in postorder(values, None):
        before = (orders[v.op] for v in read_values(op) if isinstance(v, OpResult) and v.op in orders)
        orders[op] = max(before, default=0) + (op.name == "ad.gradient")
    return max((orders[v.op] for v in values if isinstance(v, OpResult)), default=0)


def _request(
    tracer: Tracer,
    outputs: Sequence[Value],
    inputs: Sequence[Value],
    seeds: Sequence[Tensor | None],
    blockers: Sequence[Value] = (),
) -> Sequence[Value]:
    cotangents: list[Value] = []
    if any(g is not None for g in seeds):
        for y, g in zip(outputs, seeds, strict=True):
            cotangents.append(prim.constant(1, y.dtype, y.shape) if g is None else tracer.value(g))
    counts = (len(outputs), len(inputs), len(cotangents), *([len(blockers)] if blockers else []))
    operands = [*outputs, *inputs, *cotangents, *blockers]
    return tracer.builder.create("ad.gradient", operands, {"counts": counts}, location=user_location()).results


def _constant(tracer: Tracer, value: Value) -> Tensor:
    """A gradient that later gradients do not go through: the tracer puts a blocker before whoever uses it."""
    return Tensor._wrap(TracedPayload(value, tracer, user_location(), True), True)


def _differentiable_tensor(tracer: Tracer, value: Value) -> Tensor:
    return Tensor._wrap(TracedPayload(value, tracer, user_location(), True), False)


def _run_hooks(leaf: Tensor, g: Tensor) -> Tensor:
    for hook in list((leaf._hooks or {}).values()):
        replaced = None if isinstance(hook, JointHook) else hook(g)
        g = g if replaced is None else replaced
    return g


def _call_joint(leaves: Sequence[Tensor], gradients: list[Any]) -> None:
    """Let hooks of several leaves replace their gradients."""
    joint: dict[JointHook, list[int]] = {}
    for i, leaf in enumerate(leaves):
        for hook in (leaf._hooks or {}).values():
            if isinstance(hook, JointHook) and i not in joint.setdefault(hook, []):
                joint[hook].append(i)
    for hook, places in joint.items():
        made = hook([leaves[i] for i in places], [gradients[i] for i in places])
        for i, g in zip(places, made, strict=True):
            gradients[i] = g


def _accumulate(tracer: Tracer, leaf: Tensor, g: Tensor) -> None:
    tracer.touch_grad(leaf)
    old: Any = leaf._grad
    leaf._grad = g if old is None or is_symbolic_zero(old) else get_operator("add")(old, g)

"""Capturing into the regions of structured control flow.

What a region does to things outside of it (states and traced tensors that it writes in place, gradients that it puts in
slots, random numbers that it draws) must become results of the operation that holds the region, since IR values are
visible inside of their region only. So each region is recorded together with what it changed, which is put back as it
was when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import GraphBreak
from argosy_pir.builder import Builder
from argosy_pir.core import Block
from argosy_pir.types import Type
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "RecordedRegion", "check_nothing_caught", "current_value", "insertion_at", "put_value", "record", "settle_draws",
    "unbroken",
]  # fmt: skip


class RecordedRegion:
    """A region while it has no terminator yet: its ``block``, what the body returned, and what it changed.

    ``written`` maps the identity of each written place to the place and the value it had at the end; ``slots`` that of
    each tensor whose gradient slot changed to the tensor and what the slot held at the end; ``drawn`` is how many
    random draws are numbered from the random state at the end.
    """

    __slots__ = ("block", "drawn", "result", "slots", "written")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.result: Any = None
        self.written: dict[int, tuple[Any, Value, bool]] = {}
        self.slots: dict[int, tuple[Tensor, Any]] = {}
        self.drawn = 0

    def finish(self, terminator: str, values: Sequence[Value]) -> Block:
        """End the block."""
        Builder.at_end(self.block).create(terminator, values)
        return self.block

    def drop(self) -> None:
        """Throw the recorded operations away."""
        for op in reversed(list(self.block)):
            op.drop()


@contextmanager
def insertion_at(tracer: Tracer, block: Block) -> Iterator[None]:
    """Let the tracer record at the end of ``block``."""
    outer, tracer.builder = tracer.builder, Builder.at_end(block)
    tracer.closed.discard(block)
    try:
        with emit_at(tracer.builder):
            yield
    finally:
        tracer.builder = outer
        tracer.closed.add(block)


@contextmanager
def unbroken(tracer: Tracer) -> Iterator[Mapping[int, tuple[Any, tuple[Any, ...]]]]:
    """Record into a region that the graph cannot break in: what needs a value raises GraphBreak. After an exception
    everything outside of the region is as it was. Yields what is overwritten: places, and what they held before."""
    before, draws = _slots(tracer), tracer._draws
    tracer.journals.append({})
    try:
        yield tracer.journals[-1]
    except BaseException:
        for place, old in tracer.journals.pop().values():
            _restore(place, old)
        _put_slots_back(tracer, before)
        tracer._draws = draws
        raise
    journal = tracer.journals.pop()
    if tracer.journals:
        for key, entry in journal.items():
            tracer.journals[-1].setdefault(key, entry)


def record(tracer: Tracer, types: Sequence[Type], body: Callable[[Sequence[Value]], Any]) -> RecordedRegion:
    """Run ``body`` on the arguments of a new block."""
    recorded = RecordedRegion(Block(types))
    slots = _slots(tracer)
    draws = tracer._draws
    tracer.journals.append({})
    try:
        with insertion_at(tracer, recorded.block):
            recorded.result = body(recorded.block.arguments)
        check_nothing_caught(tracer)
    except BaseException:
        recorded.drop()
        raise
    finally:
        recorded.written = _put_back(tracer, recorded.block)
        recorded.slots = _put_slots_back(tracer, slots)
        recorded.drawn, tracer._draws = tracer._draws, draws
    return recorded


def check_nothing_caught(tracer: Tracer) -> None:
    """Raises GraphBreak where captured code caught an exception that one side of a branch on a tensor had raised:
    whether it is raised at all depends on the tensor."""
    error = tracer.escaping
    if error is not None:
        tracer.escaping = None
        raise GraphBreak(
            f"{type(error).__name__}({error}) was raised in a branch or loop that depends on a tensor, and caught "
            "outside of it"
        ) from error


def _slots(tracer: Tracer) -> dict[int, tuple[Tensor, Any]]:
    """What gradient slots hold: those that the capture touched, and those of its inputs."""
    tensors = [tensor for tensor, _ in tracer._slots.values()]
    tensors += [x for x in tracer.inputs if not x.stop_gradient]
    return {id(tensor): (tensor, tensor._grad) for tensor in tensors}


def _put_slots_back(tracer: Tracer, before: dict[int, tuple[Tensor, Any]]) -> dict[int, tuple[Tensor, Any]]:
    changed = {}
    for key, (tensor, now) in _slots(tracer).items():
        original = before[key][1] if key in before else tracer._slots[key][1]
        if now is not original:
            changed[key] = (tensor, now)
            tensor._grad = original
    return changed


def _put_back(tracer: Tracer, block: Block) -> dict[int, tuple[Any, Value, bool]]:
    journal = tracer.journals.pop()
    written = {}
    for key, (place, before) in journal.items():
        if not hasattr(place, "state") and _is_made_within(before[0], block):
            continue  # nobody outside knows of it
        written[key] = (place, current_value(place), getattr(place, "active", True))
        _restore(place, before)
        if tracer.journals:
            tracer.journals[-1].setdefault(key, (place, before))
    return written


def _is_made_within(value: Value, block: Block) -> bool:
    owner = value.owner
    inner: Block | None = owner if isinstance(owner, Block) else owner.parent
    while inner is not None and inner is not block:
        op = inner.parent_op
        inner = None if op is None else op.parent
    return inner is block


def current_value(place: Any) -> Value:
    """The SSA version that a state or a traced payload has now."""
    value: Value = place.current if hasattr(place, "state") else place.value
    return value


def put_value(place: Any, value: Value, active: bool) -> None:
    """Give a state or a traced payload a new SSA version."""
    if hasattr(place, "state"):
        place.current = value
        place.versions.append(value)
        place.written = True
    else:
        place.value, place.active = value, active
        place.shape, place.dtype = value.shape, as_dtype(value.dtype)


def _restore(place: Any, before: tuple[Any, ...]) -> None:
    if hasattr(place, "state"):
        place.current, place.written, count = before
        del place.versions[count:]
    else:
        place.value, place.shape, place.dtype, place.active = before


def settle_draws(tracer: Tracer, sides: Sequence[RecordedRegion]) -> None:
    """Where one of two branches draws, let the random state move on by the draws of each at its end."""
    if all(side.drawn == tracer._draws for side in sides):
        return
    place = tracer.random_state
    for side in sides:
        before = side.written[id(place)][1] if id(place) in side.written else current_value(place)
        with insertion_at(tracer, side.block):
            side.written[id(place)] = place, tracer.moved_on(before, side.drawn), False
    tracer._draws = 0

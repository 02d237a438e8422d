"""Capturing into the regions of structured control flow.

What a region does to things outside of it (states and traced tensors that it writes in place) must become results of
the operation that holds the region, since IR values are visible inside of their region only. So each region is recorded
together with the places it wrote, which are put back as they were when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy_phi_ops.capture import Tracer
from argosy_phi_ops.context import building
from argosy_phi_ops.errors import GraphBreak
from argosy_pir.builder import Builder
from argosy_pir.core import Block
from argosy_pir.types import Type
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Recorded", "current_value", "emitting", "put_value", "record"]


class Recorded:
    """A region while it has no terminator yet: its ``block``, what the body returned, and what it wrote.

    ``written`` maps the identity of each written place to the place and the value it had at the end.
    """

    __slots__ = ("block", "result", "written")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.result: Any = None
        self.written: dict[int, tuple[Any, Value, bool]] = {}

    def finish(self, terminator: str, values: Sequence[Value]) -> Block:
        """End the block."""
        Builder.at_end(self.block).create(terminator, values)
        return self.block

    def drop(self) -> None:
        """Throw the recorded operations away."""
        for op in reversed(list(self.block)):
            op.drop()


@contextmanager
def emitting(tracer: Tracer, block: Block) -> Iterator[None]:
    """Let the tracer record at the end of ``block``."""
    outer, tracer.builder = tracer.builder, Builder.at_end(block)
    tracer.closed.discard(block)
    try:
        with building(tracer.builder):
            yield
    finally:
        tracer.builder = outer
        tracer.closed.add(block)


def record(
    tracer: Tracer, types: Sequence[Type], body: Callable[[Sequence[Value]], Any], repeated: bool, what: str
) -> Recorded:
    """Run ``body`` on the arguments of a new block. ``repeated`` tells that the region may run more than once.

    Raises GraphBreak for what a region cannot hold: gradients asked for within it, and random numbers in a loop.
    ``what`` names the construct in these messages.
    """
    recorded = Recorded(Block(types))
    slots = {key: tensor._grad for key, (tensor, _) in tracer._slots.items()}
    draws = tracer._draws
    tracer.journals.append({})
    try:
        with emitting(tracer, recorded.block):
            recorded.result = body(recorded.block.arguments)
    except BaseException:
        recorded.drop()
        raise
    finally:
        recorded.written = _put_back(tracer)
    if any(tensor._grad is not slots.get(key, old) for key, (tensor, old) in tracer._slots.items()):
        raise GraphBreak(f"backward() within {what}")
    if repeated and tracer._draws != draws:
        raise GraphBreak(f"random numbers within {what}: each step would draw the same")
    return recorded


def _put_back(tracer: Tracer) -> dict[int, tuple[Any, Value, bool]]:
    journal = tracer.journals.pop()
    written = {}
    for key, (place, before) in journal.items():
        written[key] = (place, current_value(place), getattr(place, "active", True))
        _restore(place, before)
        if tracer.journals:
            tracer.journals[-1].setdefault(key, (place, before))
    return written


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

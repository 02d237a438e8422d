"""Which results are stored past the caches: those that would have left them before anybody reads them.

What is overwritten whole need not be read first, and what nobody reads soon need not take the room of what is.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from argosy_cinn.plan.steps import Step
from argosy_cinn.shapes import estimate, has_bytes, nbytes
from argosy_cinn.target import Target
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


def choose_streaming(
    steps: Sequence[Step], stored: Container[Value], in_place: Container[Value], target: Target
) -> None:
    """Mark the stores of ``steps``, which are in order, for a machine's caches. ``stored``: values that reach memory;
    ``in_place``: those that are written over what was read."""
    until_read = traffic_until_read(steps, stored)
    for step in steps:
        for form in step.forms:
            for store in form.streaming_candidates(target.vector_bits):
                value = store.buffer
                far = form.cache_pressure(until_read.get(value, 0)) >= target.l3_bytes and value not in in_place
                store.streaming = far and spend("stream", value)


def traffic_until_read(steps: Sequence[Step], stored: Container[Value]) -> dict[Value, int]:
    """Bytes that are read and written from when a value is written to when it is first read, or to the end. All of a
    step counts that writes one: its elements are read in the order in which they are written."""
    written: dict[Value, int] = {}
    found: dict[Value, int] = {}
    total = 0
    for step in steps:
        made = [v for v in step.group.members if v in stored and has_bytes(v)]
        for value in step.group.reads & written.keys():
            found.setdefault(value, total - written[value])
        written.update((value, total) for value in made)
        total += sum(estimate(nbytes(v)) for v in (*step.group.reads, *made) if has_bytes(v))
    return {value: found.get(value, total - start) for value, start in written.items()}

"""Which results are stored past the caches: those that would have left them before anybody reads them.

What is overwritten whole need not be read first, and what nobody reads soon need not take the room of what is.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from argosy_cinn.fourier.kernel import FourierKernel
from argosy_cinn.fuel import allowed
from argosy_cinn.fusion.kernels import Epilogue
from argosy_cinn.loops.schedule import Kernel, Store
from argosy_cinn.plan.sizes import LARGE
from argosy_cinn.shapes import estimate, has_bytes, nbytes
from argosy_cinn.target import Target
from argosy_pir.dims import is_static
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

if TYPE_CHECKING:
    from argosy_cinn.plan.steps import Step

#: Transformed lines are stored past the last-level cache from this part of it on: to read what is overwritten costs
#: them more than a copy, and up to three times more where both buffers fall into the same sets of the first cache.
_TURNED = 8
#: Elements that rows have a multiple of: their vectors begin at a cache line then, whatever the dtype.
_ALIGNED = 64


def choose_streaming(steps: Sequence[Step], stored: Container[Value], in_place: Container[Value]) -> None:
    """Mark the stores of ``steps``, which are in order. ``stored``: values that reach memory; ``in_place``: those that
    are written over what was read."""
    target = Target.host()
    until_read = traffic_until_read(steps, stored)
    for step in steps:
        for body in step.bodies:
            if isinstance(body, FourierKernel):
                large = estimate(nbytes(body.target)) >= target.l3_bytes // _TURNED and body.target not in in_place
                body.streaming = large and allowed("stream", body.target)
                continue
            for store in _whole_lines(body, target):
                value = store.buffer
                far = until_read.get(value, 0) >= target.l3_bytes and value not in in_place
                store.streaming = far and allowed("stream", value)


def _whole_lines(body: object, target: Target) -> list[Store]:
    """The stores of a body that fill cache lines one after the other, in memory that begins with one."""
    if isinstance(body, Kernel):
        row = None if body.sequential or body.update else body.inner[-1]
    else:  # a vector of a product has its place in a tile, and other stores come before the next one
        row = body.variables[-1] if isinstance(body, Epilogue) and target.vector_bits == 512 else None
    if row is None or row.extent % _ALIGNED != 0:
        return []
    assert isinstance(body, (Kernel, Epilogue))
    least = 1 if isinstance(body, Kernel) else 4
    return [
        s
        for s in body.stores
        if isinstance(s.buffer, Value) and not s.per_row and ITEM_SIZES[s.dtype] >= least
        if is_static(s.buffer.shape) and nbytes(s.buffer) >= LARGE
    ]


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

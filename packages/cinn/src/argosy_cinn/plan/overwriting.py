"""Which results take the memory of an operand that nobody reads any more: they are in the caches already where they are
written, and need no room of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy_cinn.fuel import allowed
from argosy_cinn.loops.schedule import Kernel, Store, phases
from argosy_cinn.plan.memory import Lifetime
from argosy_cinn.plan.sizes import LARGE
from argosy_pir.dims import is_static
from argosy_pir.values import Value

if TYPE_CHECKING:
    from argosy_cinn.plan.steps import Step


def choose_overwriting(steps: Sequence[Step], lifetimes: Sequence[Lifetime]) -> dict[Value, Value]:
    """For each such result the value whose memory it takes, from ``steps`` in order and the ``lifetimes`` in them.
    Where that one took another's, it is the first of them."""
    lives = {life.key: life for life in lifetimes}
    found: dict[Value, Value] = {}
    taken: set[Value] = set()
    for i, step in enumerate(steps):
        body = step.bodies[0] if len(step.bodies) == 1 else None
        if not isinstance(body, Kernel) or body.sequential or body.update:
            continue
        for store in body.stores:
            value = store.buffer
            if value not in lives or not is_static(value.shape) or lives[value].nbytes < LARGE:
                continue
            for operand in _overwritable(body, store):
                dies = operand in lives and lives[operand].first < i == lives[operand].last
                if dies and operand not in taken and allowed("in-place", value):
                    found[value] = found.get(operand, operand)
                    taken.add(operand)
                    break
    return found


def _overwritable(body: Kernel, store: Store) -> list[Value]:
    """The operands like the result of which nothing is read after the store but what it does not touch: all their
    loads are of the very element that is stored, and the store is in the last loop over the row."""
    value, lane = store.buffer, body.inner[-1]
    alone = sum(s.buffer is value for s in body.stores) == 1 and not any(c.buffer is value for c in body.columns)
    last = not store.per_row and store.node.level == phases(body) - 1 and store.index.variables & lane.variables
    if not alone or not last:
        return []
    read: dict[Value, bool] = {}
    for node in body.graph.order:
        if node.kind == "load" and isinstance(node.payload[0], Value):
            read[node.payload[0]] = read.get(node.payload[0], True) and node.payload[1] == store.index
    return [v for v, apt in read.items() if apt and v.shape == value.shape and v.dtype == value.dtype]

"""Which results take the memory of an operand that nobody reads any more: they are in the caches already where they are
written, and need no room of their own."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_cinn.plan.memory import Lifetime
from argosy_cinn.plan.steps import Step
from argosy_cinn.shapes import LARGE
from argosy_pir.dims import is_static
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


def choose_overwriting(steps: Sequence[Step], lifetimes: Sequence[Lifetime]) -> dict[Value, Value]:
    """For each such result the value whose memory it takes, from ``steps`` in order and the ``lifetimes`` in them.
    Where that one took another's, it is the first of them."""
    lives = {life.key: life for life in lifetimes}
    found: dict[Value, Value] = {}
    taken: set[Value] = set()
    for i, step in enumerate(steps):
        for value, operands in step.group.kind.overwrite_candidates(step.group, step.forms):
            if value not in lives or not is_static(value.shape) or lives[value].nbytes < LARGE:
                continue
            for operand in operands:
                dies = operand in lives and lives[operand].first < i == lives[operand].last
                if dies and operand not in taken and spend("in-place", value):
                    found[value] = found.get(operand, operand)
                    taken.add(operand)
                    break
    return found

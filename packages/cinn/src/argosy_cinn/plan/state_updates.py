"""States that are updated in place."""

from __future__ import annotations

from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.plan.steps import Step
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


def choose_in_place(memory: Memory, fusion: Fusion, steps: dict[int, Step], after: dict[int, set[int]]) -> set[Value]:
    """New states that are written over the old ones: the group that makes the new value does so after every other
    reader of the old one has run (which adds edges to the order ``after``), and reads the old value itself only at the
    element it is about to write."""
    program = memory.program
    readers: dict[Value, list[Group]] = {}
    for group in fusion.groups.values():
        for value in group.reads:
            readers.setdefault(value, []).append(group)
    chosen: set[Value] = set()
    outputs = set(program.outputs)
    for state, value in zip(program.states, program.state_updates, strict=True):
        argument = state.argument
        maker = fusion.maker.get(value)
        if value is argument or maker is None or value in outputs or argument in outputs:
            continue
        if not maker.kind.may_write_over(maker, steps[maker.number].forms, argument, value):
            continue
        others = [g for g in readers.get(argument, ()) if g is not maker]
        if any(g.ancestors & maker.bits for g in others) or not spend("in-place", value):
            continue
        after[maker.number].update(other.number for other in others)
        fusion.put_after(maker, others)
        steps[maker.number].forms = maker.kind.in_place(steps[maker.number].forms)
        chosen.add(value)
    return chosen

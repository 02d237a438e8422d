"""cut-stages: the pieces of a pipeline's stages as functions, which the program calls one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_autoparallel.pipeline.cut import Cut, Key, cut
from argosy_autoparallel.pipeline.stages import assign_stages
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Function, Operation, Program, Symbol, Value
from argosy_pir.opdef import RETURN
from argosy_pir.passes import Pass, register_pass

__all__ = ["CutStages"]


@register_pass("cut-stages")
@dataclass(frozen=True)
class CutStages(Pass):
    """Cuts a program of primitives into ``stages`` by the annotations ``stage`` and ``phase`` of its operations.

    ``gradients`` are the positions of outputs that are gradients of states; without any there are forward passes only.
    ``split``: the backward pass of a stage is two pieces, the second one of gradients of weights. The program computes
    what it did: the pass ``inline`` undoes this one. Schedules run the same pieces (:func:`.cut.cut`) in other orders
    for many microbatches. Raises :class:`ScheduleError` where a stage reads what a later one computes.
    """

    stages: int = 2
    split: bool = False
    gradients: tuple[int, ...] = ()

    def run(self, program: Program) -> bool:
        """Replace the program."""
        stage_of = assign_stages(program, self.stages, {}, {})
        whole = cut(program, stage_of, self.stages, self.split, self.gradients, backward=bool(self.gradients))
        program.become(_call_pieces(whole, self.gradients))
        return True


def _call_pieces(whole: Cut, gradients: tuple[int, ...]) -> Program:
    source = whole.program
    made = Program(source.name)
    made.attributes = source.attributes.copy()
    for function in source.functions.values():
        made.add_function(function.clone())
    values: dict[Value, Value] = {x: made.add_input(x.type, x.name_hint) for x in source.inputs}
    for state in source.states:
        argument = state.argument
        values[argument] = made.add_state(state.name, state.type, dict(state.attributes), argument.name_hint).argument
    updates = [values[state.argument] for state in source.states]
    sums: dict[int, Value] = {}
    with emit_at(Builder.at_end(made.block)):
        for key in whole.order():
            for position, term in _call(whole, key, made, values, updates).items():
                sums[position] = prim.add(sums[position], term) if position in sums else term
    made.set_outputs([sums[i] if i in gradients else values[x] for i, x in enumerate(source.outputs)], updates)
    return made


def _call(whole: Cut, key: Key, made: Program, values: dict[Value, Value], updates: list[Value]) -> dict[int, Value]:
    """Call a piece, if it gives anything: its outputs go into ``values``, new values of states into ``updates``.
    Returns its terms of gradients by position."""
    piece = whole.pieces[key]
    states = zip(piece.states, piece.program.states, piece.program.state_updates, strict=True)
    written = {number: update for number, state, update in states if update is not state.argument}
    results = [*piece.program.outputs, *written.values()]
    if not results:
        return {}
    function = made.add_function(_function("{}{}".format(*key), piece.program, results))
    operands = [*(values[x] for x in piece.inputs), *(updates[number] for number in piece.states)]
    callee = {"callee": Symbol("@" + function.name)}
    call = Operation("builtin.call", operands, [x.type for x in results], callee)
    made.block.append(call)
    found = iter(call.results)
    for value in piece.outputs:
        values[value] = next(found)
    terms: dict[int, Value] = {position: next(found) for position in piece.gradients}
    for number in written:
        updates[number] = next(found)
    return terms


def _function(name: str, program: Program, results: list[Value]) -> Function:
    """What the program computes, its states as arguments after its inputs."""
    made = Function(name)
    mapping: dict[Value, Value] = {}
    made.region = program.region.clone(mapping)
    made.region.parent = made
    last = made.block.last
    assert last is not None
    last.erase()
    made.block.append(Operation(RETURN, [mapping[value] for value in results]))
    return made

"""Manifests: what an executable needs beside machine code, from a plan and its assembly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.assembly.assemble import Assembly
from argosy_cinn.forms.form import Scratch
from argosy_cinn.forms.index_check import RECORD, Record
from argosy_cinn.plan.rematerialisation import RepeatedValue
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.shapes import estimate, formula, nbytes
from argosy_cinn.store import program_cache
from argosy_cinn.store.program_cache import BufferFacts, CallFacts, Manifest, RepeatedReadFacts, UnfusedAttentionFacts
from argosy_phi_ops.reference.constants import constant_array
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

_SHOWN_BUFFERS = 32


def manifest_from(program: Program, plan: ExecutionPlan, assembly: Assembly) -> Manifest:
    """The manifest of a simplified program."""
    positions = {op: i for i, op in enumerate(program.block)}
    host_calls: dict[str, int] = {}
    for op in assembly.hosts:
        host_calls[op.name] = host_calls.get(op.name, 0) + 1
    arguments = set(program.block.arguments)
    places = [  # of the body's own values: host calls see no others
        (positions[v.op] if isinstance(v, OpResult) else -1, v.index, place.entry, place.offset)
        for v, place in plan.places.items()
        if v in arguments or (isinstance(v, OpResult) and v.op in positions)
    ]
    constants = []
    for value in plan.constants:
        array = constant_array(value.op.attributes["value"], {})  # type: ignore[attr-defined]
        constants.append(program_cache.encode_constant(value.dtype, array.shape, array.tobytes()))
    updates = zip(program.states, program.state_updates, strict=True)
    return Manifest(
        segments=len(assembly.segments),
        hosts=[positions[op] for op in assembly.hosts],
        places=places if assembly.hosts else [],
        arena_bytes=plan.arena_bytes,
        constants=constants,
        written=[i for i, (state, value) in enumerate(updates) if value is not state.argument],
        kernels=len(assembly.kernels),
        kernel_calls=sum(map(len, assembly.segments)),
        host_calls=host_calls,
        calls=_call_facts(assembly, positions),
        buffers=_buffer_facts(plan, positions),
        copies=[argument.index for _, argument in plan.copies],
        symbols=list(program.symbols()),
        lifetimes=[(formula(life.nbytes), life.first, life.last) for life in plan.lifetimes]
        if program.symbols() or plan.guard
        else [],
        recomputation=plan.recomputation,
        guard=plan.guard,
        checks=RECORD in plan.places,
        unfused_attention=_unfused_facts(plan, positions),
        repeated_reads=_repeated_facts(program, assembly, positions),
    )


def _unfused_facts(plan: ExecutionPlan, positions: Mapping[Operation, int]) -> list[UnfusedAttentionFacts]:
    """Those of the program, and of the regions of its branches and loops, which lie where these do."""
    found = [
        UnfusedAttentionFacts(
            formula(nbytes(u.scores.result)), u.reason, sorted(positions[op] for op in (u.scores, *u.sinks))
        )
        for u in plan.unfused_attention
    ]
    for step in plan.steps:
        for inner in (inner for form in step.forms for inner in form.inner_plans()):
            outside = dict.fromkeys((op for u in inner.unfused_attention for op in (u.scores, *u.sinks)), 0)
            within = _unfused_facts(inner, outside)
            found += [u._replace(made=[positions[step.group.operation]]) for u in within]
    return found


def _repeated_facts(
    program: Program, assembly: Assembly, positions: Mapping[Operation, int]
) -> list[RepeatedReadFacts]:
    states: dict[Value, int] = {state.argument: i for i, state in enumerate(program.states)}
    return [
        RepeatedReadFacts(
            states.get(reads.weight, -1), nbytes(reads.weight), formula(read),
            sorted({positions[v.op] for step, *_ in reads.kernels for part in step.parts for v in part.group.members
                    if isinstance(v, OpResult) and v.op in positions}),
        )
        for reads, read in assembly.repeated_reads
    ]  # fmt: skip


def _call_facts(assembly: Assembly, positions: Mapping[Operation, int]) -> list[CallFacts]:
    return [
        CallFacts(
            i, call.kernel, formula(call.chunks), call.text,
            formula(call.cost.read), formula(call.cost.written), formula(call.cost.operations),  # type: ignore[arg-type]
            sorted({positions[v.op] for v in call.made if isinstance(v, OpResult) and v.op in positions}),
        )
        for i, calls in enumerate(assembly.segments)
        for call in calls
    ]  # fmt: skip


def _buffer_facts(plan: ExecutionPlan, positions: Mapping[Operation, int]) -> list[BufferFacts]:
    own = [life for life in plan.lifetimes if not isinstance(life.key, (str, Record))]  # names: inside of loops
    found = sorted(own, key=lambda life: -estimate(life.nbytes))[:_SHOWN_BUFFERS]
    return [BufferFacts(positions[_value(life.key).op], formula(life.nbytes), life.first, life.last) for life in found]


def _value(key: Any) -> Any:
    """The value that a buffer belongs to; what a kernel needs beside its results belongs to one of these."""
    while isinstance(key, (RepeatedValue, Scratch)):
        key = key.value
    return key


__all__ = ["manifest_from"]

"""From a plan to one LLVM module: kernels, each distinct one once, and for every native segment a function
that calls them.

A segment is ``ptr segment<i>(ptr addresses, ptr dims)``; host calls lie between segments. It returns null, or the
record of an index that was out of range (see `argosy_cinn.forms.index_check`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import count as numbers
from typing import Any

from argosy_cinn.assembly.products import passes_over_right
from argosy_cinn.assembly.segments import Call, emit_segment
from argosy_cinn.emitter import Emitter
from argosy_cinn.fallback import GroupError
from argosy_cinn.forms.form import Form, PartialResults
from argosy_cinn.forms.product import ProductForm
from argosy_cinn.kinds import emitter_of
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.repeated_reads import WeightReads
from argosy_cinn.plan.steps import ExecutionPlan, Step
from argosy_cinn.printers.llvm import Module
from argosy_cinn.shapes import Size
from argosy_cinn.target import Target
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.wait_notice import count_steps

_NOTHING = "prim.create_token"
"""What takes no call between segments: a token that nothing has made is None, too."""


@dataclass(slots=True)
class Assembly:
    """A module, the calls of each segment, and the host call after each segment but the last; ``kernels``: the names of
    functions by the keys of their forms. ``repeated_reads``: weights that a run reads more than once, and the bytes."""

    module: Module
    segments: list[list[Call]] = field(default_factory=lambda: [[]])
    hosts: list[Operation] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    repeated_reads: list[tuple[WeightReads, Size]] = field(default_factory=list)


def assemble(plan: ExecutionPlan, target: Target, traced: bool = False) -> Assembly:
    """Emit all code of a plan; ``traced`` puts stamps around every kernel (see `argosy_cinn.runtime.trace`)."""
    assembly = Assembly(Module(target))
    assembly.module.symbols = {name: i for i, name in enumerate(plan.symbols)}
    for step in count_steps(plan.steps, "functions"):
        if not step.group.kind.on_host:
            assembly.segments[-1] += _calls_of(assembly, plan, step)
        elif step.group.operation.name != _NOTHING:
            assembly.hosts.append(step.group.operation)
            assembly.segments.append([])
    passes = partial(_passes_over, target=target)
    reads = [(each, each.bytes_in(passes)) for each in plan.weight_reads]
    assembly.repeated_reads = [(each, read) for each, read in reads if each.is_repeated(read)]
    order = numbers() if traced else None
    for i, calls in enumerate(assembly.segments):
        copies = plan.copies if i == len(assembly.segments) - 1 else []
        emit_segment(assembly.module, f"segment{i}", calls, plan, copies, order)
    return assembly


def _passes_over(weight: Value, form: Form, target: Target) -> Size:
    """How many times a kernel reads a weight."""
    is_right = isinstance(form, ProductForm) and form.product.right.buffer is weight
    return passes_over_right(form.product, target) if is_right else 1  # type: ignore[attr-defined]


def _calls_of(assembly: Assembly, plan: ExecutionPlan, step: Step) -> list[Call]:
    try:
        calls = [call for form in step.forms for call in _calls(assembly, plan, step, form)]
    except Exception as error:
        raise GroupError([v.op for v in step.group.members if isinstance(v, OpResult)]) from error
    for call in calls:
        call.made = [value for part in step.parts for value in part.group.members]
        call.text = f"again: {call.text}" if step.repeated else call.text
    return calls


def _calls(assembly: Assembly, plan: ExecutionPlan, step: Step, form: Form) -> list[Call]:
    """The call of a form, and of what completes its results."""
    target = assembly.module.target
    emitter = emitter_of(form.kind, target.schedules)
    slots: dict[Any, int] = {}
    origins = {} if assembly.module.symbols else form.rebase_loads()
    name = _function(assembly, emitter, form, form.key(slots), slots)
    places = [_place(plan, step.key(key)).advance(origins.get(key, 0)) for key in slots]
    text, chunks = emitter.summary(form, target), emitter.chunks(form, target)
    grid = None if emitter.grid is None else partial(emitter.grid, form)
    call = Call(name, places, chunks, text, form.cost(), grid, checks_indices=form.checks_indices)
    return [call, *(c for following in form.completion_forms() for c in _calls(assembly, plan, step, following))]


def _function(assembly: Assembly, emitter: Emitter, form: Form, key: str, slots: dict[Any, int]) -> str:
    """The name of the function of a form, which is emitted unless there is one."""
    if key in assembly.kernels:
        return assembly.kernels[key]
    name = assembly.module.unique(form.name())
    if key:
        assembly.kernels[key] = name
    for i, plan in enumerate(form.inner_plans()):
        calls = [call for step in plan.steps for call in _calls_of(assembly, plan, step)]
        emit_segment(assembly.module, f"{name}.region{i}", calls, plan, [], None, export=False)
    emitter.emit(assembly.module, name, form, slots)
    return name


def _place(plan: ExecutionPlan, key: Any) -> Place:
    """Where a buffer is. Raises KeyError where it has no memory: code that wrote it would write over something else."""
    found = plan.places.get(key)
    if found is None and isinstance(key, PartialResults):
        return Place(0)  # of a single part: its slot is never read
    return found if found is not None else plan.places[key]

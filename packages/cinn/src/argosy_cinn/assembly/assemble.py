"""From a plan to one LLVM module: kernels, each distinct one once, and for every native segment a function
that calls them.

A segment is ``ptr segment<i>(ptr addresses, ptr dims)``; host calls lie between segments. It returns null, or the
record of an index that was out of range (see `argosy_cinn.checks.note`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from re import sub
from typing import Any, TypeAlias

from argosy_cinn.assembly.control import ControlFlow, emit_control
from argosy_cinn.assembly.products import (
    choose_variant,
    filters_minimally,
    problem_of,
    problem_text,
    variant,
    variants_of,
)
from argosy_cinn.assembly.segments import Call, emit_segment
from argosy_cinn.attention.emit import emit_combination, emit_strips
from argosy_cinn.attention.strips import Partial as StripPartial
from argosy_cinn.attention.strips import StripKernel, strip_text
from argosy_cinn.checks.note import NoteKernel, emit_note
from argosy_cinn.contraction import emit
from argosy_cinn.fallback import GroupError
from argosy_cinn.forms.expressions import Graph
from argosy_cinn.forms.indices import Variable, of
from argosy_cinn.fourier.emit import emit_fourier
from argosy_cinn.fourier.kernel import FourierKernel
from argosy_cinn.fusion.kernels import Epilogue, Partial, epilogue_text, kernel_text
from argosy_cinn.fusion.products import Product
from argosy_cinn.loops.nest import PARAMETERS, Pointers, emit_kernel, has_partial, partial_dtype
from argosy_cinn.loops.schedule import (
    ColumnReduction,
    Kernel,
    Reduction,
    Store,
    choose_chunks,
    shares_columns,
    shares_places,
)
from argosy_cinn.ordering.emit import emit_order
from argosy_cinn.ordering.kernel import OrderKernel
from argosy_cinn.plan.steps import Plan, Step
from argosy_cinn.plan.traffic import Cost, control_cost, kernel_cost, product_cost
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import LLVM_TYPES, VOID, Value
from argosy_cinn.shapes import nbytes
from argosy_cinn.store.program_cache import Place
from argosy_cinn.target import Target
from argosy_pir.core import Operation
from argosy_pir.values import OpResult

#: Where the buffers of a kernel are.
Places: TypeAlias = Callable[[Iterable[Any]], list[Place]]


@dataclass(slots=True)
class Assembly:
    """A module, the calls of each segment, and the host call after each segment but the last."""

    module: Module
    segments: list[list[Call]] = field(default_factory=lambda: [[]])
    hosts: list[Operation] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)


def assemble(plan: Plan, target: Target, traced: bool = False) -> Assembly:
    """Emit all code of a plan; ``traced`` puts stamps around every kernel (see `argosy_cinn.runtime.trace`)."""
    assembly = Assembly(Module(target))
    assembly.module.symbols = {name: i for i, name in enumerate(plan.symbols)}
    for step in plan.steps:
        if step.group.kind == "host":
            assert step.group.op is not None
            assembly.hosts.append(step.group.op)
            assembly.segments.append([])
        else:
            calls = _calls_of(assembly, plan, step)
            for call in calls:
                call.made = [value for part in step.parts for value in part.group.members]
                call.text = f"again: {call.text}" if step.repeated else call.text
            assembly.segments[-1] += calls
    order = numbers() if traced else None
    for i, calls in enumerate(assembly.segments):
        copies = plan.copies if i == len(assembly.segments) - 1 else []
        emit_segment(assembly.module, f"segment{i}", calls, plan, copies, order)
    return assembly


def _calls_of(assembly: Assembly, plan: Plan, step: Step) -> list[Call]:
    try:
        return _calls(assembly, plan, step)
    except Exception as error:
        raise GroupError([v.op for v in step.group.members if isinstance(v, OpResult)]) from error


def _calls(assembly: Assembly, plan: Plan, step: Step) -> list[Call]:
    calls: list[Call] = []

    def places(keys: Iterable[Any]) -> list[Place]:
        return [_place(plan, step.key(key)) for key in keys]

    for body in step.bodies:
        if isinstance(body, Epilogue):
            assert step.group.product is not None
            calls.append(_product_call(assembly, places, _twins(step)))
            continue
        if isinstance(body, StripKernel):
            calls += _strip_calls(assembly, places, body)
            continue
        if isinstance(body, ControlFlow):
            calls.append(_control_call(assembly, plan, body))
            continue
        if isinstance(body, NoteKernel):
            call = _own_call(assembly, places, body, "note_index", body.chunks, emit_note)
            calls.append(replace(call, notes=True))
            continue
        if isinstance(body, OrderKernel):
            name = _identifier(f"order_{body.rows}x{body.length}")
            calls.append(_own_call(assembly, places, body, name, body.chunks, emit_order))
            continue
        if isinstance(body, FourierKernel):
            name = _identifier(f"fourier_{body.outers}x{body.lanes}x{body.length}")
            chunks = body.chunks(assembly.module.target.lanes(LLVM_TYPES[body.real]))
            calls.append(_own_call(assembly, places, body, name, chunks, emit_fourier))
            continue
        calls.append(_kernel_call(assembly, places, body))
        chunks = choose_chunks(body).count
        partial = [c for c in body.columns if has_partial(c, chunks)]
        calls += [_kernel_call(assembly, places, _combination(c, body, chunks)) for c in partial]
    return calls


def _place(plan: Plan, key: Any) -> Place:
    """Where a buffer is. Raises KeyError where it has no memory: code that wrote it would write over something else."""
    found = plan.places.get(key)
    if found is None and isinstance(key, (Partial, StripPartial)):
        return Place(0)  # of a single chunk: its slot is never read
    return found if found is not None else plan.places[key]


def _kernel_call(assembly: Assembly, places: Places, kernel: Kernel) -> Call:
    slots: dict[Any, int] = {}
    text = kernel_text(kernel, slots)
    name = _once(assembly, text, _kernel_name(kernel), lambda name: emit_kernel(assembly.module, name, kernel, slots))
    chunks = 0 if shares_columns(kernel) or shares_places(kernel) else choose_chunks(kernel).count
    return Call(name, places(slots), chunks, None, _summary(kernel), kernel_cost(kernel))


def _own_call(assembly: Assembly, places: Places, kernel: Any, name: str, chunks: int, emit: Any) -> Call:
    """The call of a kernel that nothing is fused into."""
    name = _once(assembly, kernel.text(), name, lambda n: emit(assembly.module, n, kernel))
    return Call(name, places(kernel.slots()), chunks, None, kernel.summary(), Cost(*kernel.work()))


def _strip_calls(assembly: Assembly, places: Places, kernel: StripKernel) -> list[Call]:
    slots: dict[Any, int] = {}
    text = strip_text(kernel, slots)
    shape = _identifier(f"{kernel.row.extent}x{kernel.column.extent}")
    name = _once(assembly, text, f"attention_{shape}", lambda n: emit_strips(assembly.module, n, kernel, slots))
    calls = [Call(name, places(slots), kernel.chunks, None, kernel.summary(), Cost(*kernel.work()))]
    for sink in kernel.partial_sinks():
        slots = {sink.buffer: 0, StripPartial(sink.buffer): 1}
        text = f"sum of {kernel.parts} {[v.extent for v in (*kernel.outer, kernel.column)]} {sink.width} "
        text += f"{sink.outer} {sink.step} {sink.unit} {sink.buffer.dtype} "
        text += "" if sink.factor is None else f"{sink.factor[0]} {sink.factor[1].payload}"

        def build(name: str, sink: Any = sink, slots: Any = slots) -> None:
            emit_combination(assembly.module, name, kernel, sink, slots)

        name = _once(assembly, text, f"attention_sum_{kernel.parts}x{shape}", build)
        calls.append(Call(name, places(slots), kernel.elements, None, f"{kernel.parts} parts added up"))
    return calls


def _once(assembly: Assembly, text: str, name: str, build: Any) -> str:
    if text not in assembly.kernels:
        assembly.kernels[text] = assembly.module.unique(name)
        build(assembly.kernels[text])
    return assembly.kernels[text]


def _kernel_name(kernel: Kernel) -> str:
    shape = "x".join(str(v.extent) for v in (*kernel.outer, *kernel.sequential, *kernel.inner))
    what = "_".join(sorted({r.kind for r in kernel.reductions} | {f"column_{c.kind}" for c in kernel.columns})) or "map"
    return _identifier(f"{what}_{shape}")


def _identifier(name: str) -> str:
    return sub(r"\W+", "_", name)


def _summary(kernel: Kernel) -> str:
    kinds: dict[str, int] = {}
    for node in kernel.graph.order:
        kinds[node.kind] = kinds.get(node.kind, 0) + 1
    operations = " ".join(f"{k}x{n}" if n > 1 else k for k, n in kinds.items())
    return f"{kernel.rows} rows of {kernel.columns_count}: {operations}"


def _combination(column: ColumnReduction, kernel: Kernel, chunks: int) -> Kernel:
    """The kernel that combines the chunks' partial results of a column reduction, in order."""
    graph = Graph()
    chunk, place = Variable(0, chunks), Variable(1, kernel.columns_count)
    body = graph.load(column.partial, of(chunk) * place.extent + of(place), partial_dtype(column.dtype), ())
    result = graph.reduced(0, column.dtype, place.variables, 1)
    return Kernel(
        graph, [], [place], sequential=[chunk],
        reductions=[Reduction(column.kind, column.dtype, body, result)],
        stores=[Store(column.buffer, of(place), result, column.dtype, True)],
    )  # fmt: skip


# -- branches and loops


def _control_call(assembly: Assembly, plan: Plan, flow: ControlFlow) -> Call:
    """The call of a branch or loop: it and its regions are functions of the same module."""
    name, functions = assembly.module.unique(f"{flow.op.kind}_"), []
    for i, region in enumerate(flow.regions):
        calls = [call for step in region.plan.steps for call in _calls_of(assembly, region.plan, step)]
        functions.append(f"{name}.region{i}")
        emit_segment(assembly.module, functions[-1], calls, region.plan, [], None, export=False)
    slots = flow.slots()
    emit_control(assembly.module, name, flow, slots, functions)
    places = [plan.places[key] for key in slots]
    return Call(name, places, 1, None, flow.summary(), control_cost(flow), notes=flow.notes)


# -- matrix products


#: A product with its epilogue.
_Made: TypeAlias = tuple[Product, Epilogue]


def _twins(step: Step) -> list[_Made]:
    """The products of a step with their epilogues: one, or two that share a read."""
    found: list[_Made] = []
    for part in step.parts:
        (body,) = part.bodies
        assert isinstance(body, Epilogue)
        assert part.group.product is not None
        found.append((part.group.product, body))
    return found


def _product_call(assembly: Assembly, places: Places, made: list[_Made]) -> Call:
    (product, epilogue), *twins = made
    slots: dict[Any, int] = {product.left.buffer: 0}
    slots.setdefault(product.right.buffer, len(slots))
    text = "\n".join(part for p, e in made for part in (problem_text(p, slots), epilogue_text(e, slots)))
    name = _identifier(f"product_{product.rows}x{product.columns}x{product.depth}")

    def emit_kind(name: str, kind: str) -> list[str]:
        with assembly.module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
            table, chunk, chunks = b.arguments
            b.sizes_from(table, len(slots))
            pointers = Pointers(b, table, slots)
            whole = problem_of(b, product, epilogue, pointers)
            whole.twins = tuple(problem_of(b, *twin, pointers) for twin in twins)
            problem, blocking = variant(b, whole, kind)
            emit(b, problem, chunk, chunks, blocking)
            return variants_of(b, whole)

    def build(name: str) -> None:
        if isinstance(product.rows, int) or product.batch:
            emit_kind(name, "any")
            return
        kinds = emit_kind(f"{name}.any", "any")
        for kind in kinds[:-1]:
            emit_kind(f"{name}.{kind}", kind)
        with assembly.module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
            b.sizes_from(b.arguments[0], len(slots))
            problem = problem_of(b, product, epilogue, None)

            def call(kind: str) -> list[Value]:
                b.call(f"{name}.{kind}", VOID, *b.arguments)
                return []

            choose_variant(b, problem, kinds, call)

    line = _product_line(made, assembly.module.target)
    return Call(_once(assembly, text, name, build), places(slots), 0, product, line, _shared_cost(made))


def _product_line(made: list[_Made], target: Target) -> str:
    product, _ = made[0]
    shape = f"{'x'.join(map(str, product.batch))} of " if product.batch else ""
    shape = f"{len(made)} times {shape}" if len(made) > 1 else shape
    fused = sum(len(epilogue.graph.order) - 1 for _, epilogue in made)
    how = " by minimal filtering" if filters_minimally(product, target) else ""
    return f"{shape}{product.rows} x {product.columns} x {product.depth}{how}, epilogue of {fused} operations"


def _shared_cost(made: list[_Made]) -> Cost:
    """The cost of products that read their operands once."""
    first, *others = (product_cost(*m) for m in made)
    operands = {m.buffer: nbytes(m.buffer) for m in (made[0][0].left, made[0][0].right)}
    shared = sum(operands.values())
    for cost in others:
        read, written = first.read + cost.read - shared, first.written + cost.written
        first = Cost(read, written, first.operations + cost.operations)
    return first


__all__ = ["Assembly", "Call", "Partial", "assemble"]

"""From a program to steps: launches of kernels, branches and loops, host calls.

Fusion, memory and schedules are those of other machines of the family: the device decides nothing but what it builds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy_cinn.checks.refusal import refusal
from argosy_cinn.forms.form import Form, PartialResults
from argosy_cinn.forms.index_check import RECORD
from argosy_cinn.fuel import Budget
from argosy_cinn.host import HostCall
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.control import ControlForm
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.planning import plan_program
from argosy_cinn.plan.sizes import SizeFacts, SizeFormulas
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.plan.steps import Step as PlanStep
from argosy_cinn.recursion import deep_recursion
from argosy_cinn.rewrites.split_depth import is_split_at
from argosy_cinn.runtime.cache import cache_key, default_cache
from argosy_cinn.shapes import NotSymbolic, formula, nbytes
from argosy_cinn.simt.control import ControlStep
from argosy_cinn.simt.sources import Source, source_for
from argosy_cinn.simt.steps import HostStep, Launch, Step, place_at
from argosy_hwadapt import Device, KernelBuildError, UnsupportedOperation
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import AxisError, CompileError
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.user_line import user_location
from argosy_pir.core import Operation
from argosy_pir.dims import evaluate_dim
from argosy_pir.location import Location
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.storage import host_device

__all__ = ["Launch", "SimtProgram", "SizedProgram"]


@dataclass(frozen=True, slots=True)
class SizedProgram:
    """The steps of a program in numbers, and what a call needs besides; ``made`` has the kernels."""

    made: SimtProgram
    signature: list[tuple[tuple[int, ...], str]]
    outputs: list[tuple[tuple[int, ...], str]]
    steps: list[Step]
    arena_bytes: int
    record: Place | None
    copies: list[tuple[Place, Place, int]]

    def __getattr__(self, name: str) -> Any:
        """What is the same at all sizes: ``program``, ``name``, ``inputs``, ``states``, ``constants``, ``written``,
        ``communicators``."""
        return getattr(self.made, name)

    def report(self) -> dict[str, Any]:
        """Figures, as :meth:`Executable.report` gives them."""
        made = self.made
        return {
            "kernels": len(made.names), "kernel_calls": len(launches(self.steps)), "host_calls": dict(made.host_calls),
            "arena_bytes": self.arena_bytes, "compile_seconds": 0.0, "cache_hit": made.cache_hit,
        }  # fmt: skip

    def describe(self) -> str:
        """The launches, and the source of their kernels."""
        lines = [f"{x.kernel}: {x.groups} groups of {x.items}" for x in launches(self.steps)]
        return "\n".join([*lines, self.made.source])


def launches(steps: Sequence[Step]) -> list[Launch]:
    """Those of a program's own steps."""
    return [step for step in steps if isinstance(step, Launch)]


class SimtProgram:
    """The launches of ``program`` on a device of a kernel form that has sources, for all its sizes.

    Raises `CompileError` for what has no schedule of work-groups, or no text, and `NotSymbolic` where a program with
    symbolic sizes needs numbers.
    """

    def __init__(
        self, program: Program, device: Device, options: Mapping[str, Any],
        communicators: Mapping[tuple[int, ...], Any] | None = None,
    ) -> None:  # fmt: skip
        self.program, self.device, self.name = program, device, program.name
        self.communicators = communicators or {}
        self.inputs = len(program.inputs)
        self.states = [state.name for state in program.states]
        self.printer: Source = source_for(device.info, options)
        self.target = self.printer.target
        if program.symbols() and not self.printer.takes_sizes:
            raise NotSymbolic(f"kernels of form {self.printer.form} are printed for known sizes")
        self.primitives = to_primitives(program, options)
        budget = Budget.from_options(options)
        with own_context(), deep_recursion(), budget.simplification():
            simplified = lower_program(self.primitives, self.target, self.target.schedules)
        with deep_recursion(), budget.fusion():
            plan = self.plan = plan_program(simplified, self.target)
        self.host_calls: Counter[str] = Counter()
        self.kernels: dict[str, str] = {}
        self._texts: list[str] = []
        self._loaded: dict[str, Any] = {}
        self.names: list[str] = []
        self._origins: dict[str, Operation] = {}
        self._forms: list[Form] = []
        self._lowered = simplified
        with deep_recursion():
            self.steps = self._steps(simplified, plan)
        self.source = "\n".join([self.printer.head, *self._texts])
        self.constants = [constant_array(v.op.attributes["value"], {}) for v in plan.constants]  # type: ignore[attr-defined]
        updates = zip(simplified.states, simplified.state_updates, strict=True)
        self.written = [i for i, (state, value) in enumerate(updates) if value is not state.argument]
        self.cache_hit = False
        self._formulas = self._size_formulas() if program.symbols() else None

    def _size_formulas(self) -> SizeFormulas:
        for step in self.steps:
            if not isinstance(step, Launch):
                step.at({})
        values = [*self.primitives.block.arguments, *(r for op in self.primitives.walk() for r in op.results)]
        shapes = list({v.shape: None for v in values if isinstance(v.type, TensorType)})
        lives = [(formula(life.nbytes), life.first, life.last) for life in self.plan.lifetimes]
        return SizeFormulas(self.primitives, SizeFacts(self.program.symbols(), lives), shapes)

    def at(self, symbols: Mapping[str, int]) -> SizedProgram | None:
        """The program in numbers; None where its kernels do not serve them: a tensor has no elements, or too many, or
        kernels for these sizes add in another order."""
        plan, record = self.plan, self.plan.places.get(RECORD)
        copies = [(plan.places[v], plan.places[to], nbytes(v)) for v, to in plan.copies]
        if self._formulas is None:
            signature: Any = [(v.shape, v.dtype) for v in self.program.block.arguments]
            outputs: Any = [(v.shape, v.dtype) for v in self.program.outputs]
            return SizedProgram(self, signature, outputs, self.steps, plan.arena_bytes, record, copies)
        found = self._formulas.sizes_at(symbols)
        if found is None or found.dims is None:
            return None
        numbers = dict(zip(plan.symbols, found.dims, strict=True))
        if is_split_at(self._lowered, numbers) or not all(self.printer.serves(form, numbers) for form in self._forms):
            return None
        copies = [(place_at(v, numbers), place_at(to, numbers), evaluate_dim(n, numbers)) for v, to, n in copies]
        steps = [step.at(numbers) for step in self.steps]
        outputs = [(shape, dtype) for shape, dtype, _ in found.outputs]
        record = place_at(record, numbers) if record is not None else None
        return SizedProgram(self, found.signature, outputs, steps, found.arena_bytes, record, copies)

    def _steps(self, program: Program, plan: ExecutionPlan) -> list[Step]:
        found: list[Step] = []
        for step in plan.steps:
            if step.group.kind.on_host:
                found.append(self._host_step(program, plan, step))
            for form in step.forms:
                found += self._steps_of(plan, step, form)
        return found

    def _host_step(self, program: Program, plan: ExecutionPlan, step: PlanStep) -> HostStep:
        op = step.group.operation
        self.host_calls[op.name] += 1
        constants = [op for op in program.block if op.name == "builtin.constant"]
        splats: dict[Value, Any] = {op.result: constant_array(op.attributes["value"], {}) for op in constants}
        call = HostCall(op, program, splats, self._on_host)
        return HostStep(call, {v: plan.places[v] for v in (*step.group.reads, *op.results) if v in plan.places})

    def _on_host(self, region: Program) -> Any:
        table: Any = self.communicators
        return get_compiler().compile(region, host_device(), table).bind(())

    def _steps_of(self, plan: ExecutionPlan, step: PlanStep, form: Form) -> list[Step]:
        if isinstance(form, ControlForm):
            regions = [self._steps(region.program, region.plan) for region in form.regions]
            return [ControlStep(form, regions, {buffer: _place(plan, step.key(buffer)) for buffer in form.slots()})]
        name = f"k{len(self._texts)}_{form.name()}"
        key, text, buffers, taken = self.printer.print(name, form)
        if not key or key not in self.kernels:
            self.kernels[key] = name
            self._texts.append(text)
            self.names.append(name)
            self._origins[name] = step.group.op or next(v.op for v in step.group.members if isinstance(v, OpResult))
        self._forms += [form] if taken else []
        groups, items = self.printer.extents(form)
        places = [_place(plan, step.key(buffer)) for buffer in buffers]
        found: list[Step] = [Launch(self.kernels[key], groups, items, places, taken)]
        for following in self.printer.completions(form):
            found += self._steps_of(plan, step, following)
        return found

    def load(self) -> dict[str, Any]:
        """The kernels by name: built now, or found in the cache by source and device. Raises `CompileError` where the
        device says that it has no code for one."""
        if not self._texts or self._loaded:
            return self._loaded
        info, store = self.device.info, default_cache()
        key = cache_key(self.source, (self.device.name, info.name, info.arch), (self.printer.form,))
        blob = store.get(key)
        self.cache_hit = blob is not None
        if blob is None:
            try:
                blob = self._build(self.source)
            except UnsupportedOperation as error:
                raise CompileError(str(error)) from error
            except KernelBuildError as error:
                raise self._build_error(error) from error
            store.put(key, blob)
        self._loaded = {name: self.device.load(blob, name) for name in self.names}
        return self._loaded

    def _build(self, source: str) -> bytes:
        return self.device.build(self.printer.form, self.printer.image(source))

    def _build_error(self, whole: KernelBuildError) -> KernelBuildError:
        """The error of the first kernel that does not build, with its operations and the user's line."""
        for name, text in zip(self.names, self._texts, strict=True):
            try:
                self._build(f"{self.printer.head}\n{text}")
            except KernelBuildError as error:
                op = self._origins[name]
                where = op.location.suffix or user_location().suffix
                what = f"{op.name} of program {self.name!r}"
                return KernelBuildError(f"{self.device}: {what} was not built{where}: {error}", error.log)
        return whole

    def refusal(self, record: int, caller: Location) -> AxisError:
        """The error for what a run that ``caller`` submitted has noted at the address ``record``."""
        return refusal(self.primitives, None, record, caller)


def _place(plan: ExecutionPlan, key: Any) -> Place:
    found = plan.places.get(key)
    if found is None and isinstance(key, PartialResults):
        return Place(0)  # of a single part: its slot is never read
    return found if found is not None else plan.places[key]

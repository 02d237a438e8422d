"""The compiler, top down: operators to primitives, simplify, fuse, order and place, emit, load.

    executable = CinnCompiler().compile(program, device)
    outputs = executable.run(inputs, states)

Options: ``threads`` (for the whole process), ``cache`` (an `ObjectCache`), ``passes`` (LLVM's level, None for none),
``fuel`` (how many optimisations may happen), ``without`` (kinds of them to leave out; see `argosy_cinn.fuel`) and
``memory_budget`` (bytes that intermediate values may need: what does not fit is computed again).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from argosy_cinn import program_cache, tracing
from argosy_cinn.assemble import Assembly, assemble
from argosy_cinn.attention.strips import Partial as StripPartial
from argosy_cinn.control import CompileRegion
from argosy_cinn.dump import dump, dumping, record, record_sizes
from argosy_cinn.executable import Executable, Views
from argosy_cinn.explanation import size
from argosy_cinn.fallback import InterpretedExecutable, interpreted
from argosy_cinn.fuel import Budget
from argosy_cinn.fusion.kernels import Partial
from argosy_cinn.host import HostCall
from argosy_cinn.native_control import Spare, Workspace
from argosy_cinn.planning import plan_program, simplified
from argosy_cinn.program_cache import BufferFacts, CallFacts, Manifest
from argosy_cinn.recursion import deep_recursion
from argosy_cinn.rematerialise import Again
from argosy_cinn.runtime import ObjectCache, compile_object, default_cache, entry, set_threads
from argosy_cinn.runtime.entry import Entry
from argosy_cinn.runtime.jit import CodegenError, Library, link
from argosy_cinn.runtime.trace import Trace
from argosy_cinn.shapes import NotSymbolic, estimate, formula
from argosy_cinn.specialise import CodeForSizes, SpecialisingExecutable
from argosy_cinn.steps import Place, Plan
from argosy_cinn.target import Target
from argosy_hwadapt import Device
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.interpreter import communicator_table
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.storage import Strided

_OPTIONS = frozenset({"threads", "cache", "passes", "fuel", "without", "memory_budget"})
_DIALECTS = frozenset({"prim", "builtin", "control", "phi"})
_SHOWN_BUFFERS = 32


class CinnCompiler:
    """Compiles programs of operators, primitives and control flow for the host."""

    name = "cinn"

    def compile(
        self,
        program: Program,
        device: Device,
        communicators: Any = (),
        options: Mapping[str, Any] | None = None,
    ) -> Executable | SpecialisingExecutable | InterpretedExecutable:
        """An executable of ``program``, which is left as it is.

        A program with symbolic sizes is compiled once for all of them; where that cannot be, for each combination at
        its first call (see `specialise`). Raises `CompileError` for operations that are no primitives, naming the
        user's line, and ``ValueError`` for unknown options. A program that code generation fails on runs on the
        reference interpreter, with a warning.
        """
        chosen = dict(options or {})
        if not chosen.keys() <= _OPTIONS:
            unknown = sorted(chosen.keys() - _OPTIONS)
            raise ValueError(f"unknown options {unknown}; there are: {', '.join(sorted(_OPTIONS))}")
        if not hasattr(device, "adopt") or device.name == "virtual":
            raise CompileError(f"argosy_cinn compiles for host devices only, not for {device.name!r}")
        if "threads" in chosen:
            set_threads(chosen["threads"])
        Budget.of(chosen)  # refuses what it does not know
        _check(program)
        table = communicator_table(communicators)

        def static(program: Program, original: Program) -> Executable | InterpretedExecutable:
            try:
                with own_context():
                    return compile_static(program, original, device, table, chosen)
            except CompileError:
                raise
            except (Exception, RecursionError) as error:  # noqa: BLE001  (a fault here must not stop a user's program)
                return interpreted(original if original.symbols() == () else program, device, table, error)

        if not program.symbols():
            return static(program, program)
        code, reason = None, ""
        try:
            with own_context():
                code = compile_symbolic(program, device, table, chosen)
        except NotSymbolic as error:
            reason = str(error)
        except CompileError:
            raise
        except (Exception, RecursionError) as error:  # noqa: BLE001  (code for each combination of sizes is there)
            reason = f"{type(error).__name__}: {error}"  # formulas have no order: a choice may compare what is unknown
        made = SpecialisingExecutable(program, code, reason, lambda numbers: static(numbers, program))
        if code is not None and code.folder is not None:
            record_sizes(made, code.folder)
        return made


def compile_static(
    static: Program,
    original: Program,
    device: Device,
    communicators: Mapping[tuple[int, ...], Any],
    options: Mapping[str, Any],
) -> Executable:
    """Compile a program of known shapes. ``original`` is what the executable calls its program."""
    started = perf_counter()
    static = to_primitives(static)
    code = _code_of(static, options)
    manifest, simplified = code.manifest, code.simplified

    def compile_region(region: Program) -> Callable[[Sequence[Strided]], list[Strided]]:
        return compile_static(region, region, device, communicators, options).bind(())

    hosts, places = _host_calls(simplified(), manifest, compile_region) if manifest.hosts else ([], {})
    executable = Executable(
        original, static, device, code.entries, hosts, places, _constants(manifest), manifest, communicators,
        _facts(code, started), code.views,
    )  # fmt: skip
    if dumping():
        record(executable, code.dump(static, original.name))
    simplified.forget()
    tracing.register(executable)
    return executable


def compile_symbolic(
    program: Program, device: Device, communicators: Mapping[tuple[int, ...], Any], options: Mapping[str, Any]
) -> CodeForSizes:
    """Code for all sizes of a program. Raises `NotSymbolic` where a choice depends on sizes."""
    started = perf_counter()
    static = to_primitives(program)
    code = _code_of(static, options)
    folder = code.dump(static, program.name) if dumping() else None
    code.simplified.forget()
    facts = _facts(code, started)

    def executable(symbols: Mapping[str, int]) -> Executable:
        made = _for_sizes(code, program, static, device, communicators, facts, symbols)
        tracing.register(made)
        return made

    values = [*static.block.arguments, *(r for op in static.walk() for r in op.results)]
    return CodeForSizes(executable, list({v.shape: None for v in values if isinstance(v.type, TensorType)}), folder)


def _for_sizes(
    code: _Code, program: Program, static: Program, device: Device, communicators: Mapping[tuple[int, ...], Any],
    facts: dict[str, Any], symbols: Mapping[str, int],
) -> Executable:  # fmt: skip
    """The executable of given sizes of code for all sizes."""
    manifest, dims = program_cache.for_sizes(code.manifest, symbols)
    facts = {**facts, "arena_bytes": manifest.arena_bytes}
    return Executable(
        program, static, device, code.entries, [], {}, _constants(manifest), manifest, communicators, facts,
        code.views, symbols, dims,
    )  # fmt: skip


@dataclass(slots=True)
class _Code:
    """Loaded code, and what it was made from."""

    manifest: Manifest
    entries: list[Entry]
    simplified: Simplified
    views: Views
    library: Library
    budget: Budget

    def dump(self, program: Program, name: str) -> Path:
        """Write all stages; returns the folder."""
        simplified = self.simplified()
        _, assembly = _assembled(simplified, Target.host(), self.budget)
        return dump(name, program, simplified, self.manifest, self.library.code, assembly.module.text())


def _code_of(static: Program, options: Mapping[str, Any]) -> _Code:
    """The code of a program of primitives: from the cache, or made now."""
    target, budget = Target.host(), Budget.of(options)
    fresh = budget.process or dumping()  # what is found in a cache was made under other limits, and leaves no trace
    store = options.get("cache") or (ObjectCache(None) if fresh else default_cache())
    key = program_cache.program_key(static, target, options)
    simplified = Simplified(static, budget)

    def made() -> tuple[Manifest, bytes]:
        manifest, code = build(simplified(), target, options, budget)
        program_cache.keep(store, key, manifest, code)
        return manifest, code

    found = program_cache.find(store, key)
    manifest, code = found or made()
    try:
        library = link(code, manifest.entries, cache_hit=found is not None)
    except CodegenError:
        if found is None:
            raise
        manifest, code = made()  # what was stored is no code for this process
        library = link(code, manifest.entries)
    budget.settle()
    _warn_of_memory(static.name, manifest)
    return _loaded(manifest, library, simplified, options, budget)


def _warn_of_memory(name: str, manifest: Manifest) -> None:
    done = manifest.recomputation
    if done is not None and manifest.arena_bytes > done.budget:
        warnings.warn(
            f"program '{name}' needs {size(manifest.arena_bytes)} for intermediate values however much is computed "
            f"again, more than the memory budget of {size(done.budget)} (without a budget {size(done.peak_before)})",
            RuntimeWarning,
            stacklevel=2,
        )


def _loaded(
    manifest: Manifest, library: Library, simplified: Simplified, options: Mapping[str, Any], budget: Budget
) -> _Code:
    def instrumented() -> tuple[list[Entry], Trace]:
        trace = Trace()
        again, code = build(simplified(), Target.host(), options, budget, traced=True)
        traced = link(code, again.entries, symbols=trace.symbols)
        return [entry(traced, name) for name in again.entries], trace

    entries = [entry(library, name) for name in manifest.entries]
    return _Code(manifest, entries, simplified, Views(simplified, instrumented), library, budget)


def load_compiled(
    program: Program, manifest: Manifest, data: bytes, device: Device, symbols: Mapping[str, int] | None = None
) -> Executable:
    """The executable of a simplified program whose manifest and machine code are at hand, as in a dump; ``symbols``:
    its sizes, where it has such."""
    started, budget = perf_counter(), Budget(0)
    code = _loaded(manifest, link(data, manifest.entries), Simplified(program, budget), {}, budget)
    if manifest.symbols:
        return _for_sizes(code, program, program, device, {}, _facts(code, started), symbols or {})

    def compile_region(region: Program) -> Callable[[Sequence[Strided]], list[Strided]]:
        return compile_static(region, region, device, {}, {}).bind(())

    hosts, places = _host_calls(code.simplified(), manifest, compile_region)
    return Executable(
        program, program, device, code.entries, hosts, places, _constants(manifest), manifest, {},
        _facts(code, started), code.views,
    )  # fmt: skip


def _facts(code: _Code, started: float) -> dict[str, Any]:
    manifest = code.manifest
    return {
        "kernels": manifest.kernels,
        "kernel_calls": manifest.kernel_calls,
        "host_calls": manifest.host_calls,
        "arena_bytes": manifest.arena_bytes,
        **({} if manifest.recomputation is None else {"recomputed": asdict(manifest.recomputation)}),
        "compile_seconds": perf_counter() - started,
        "cache_hit": code.library.cache_hit,
    }


class Simplified:
    """The simplified form of a program, made when it is asked for and not kept after `forget`."""

    def __init__(self, program: Program, budget: Budget) -> None:
        self._program, self._budget = program, budget
        self._made: Program | None = None
        self._keep = True

    def __call__(self) -> Program:
        """The program; equal each time."""
        if self._made is not None:
            return self._made
        with own_context(), self._budget.simplifying():
            made = _simplified(self._program)
        if self._keep:
            self._made = made
        return made

    def forget(self) -> None:
        """Make it again from now on: it is large, and needed to look at things only."""
        self._made, self._keep = None, False


def build(
    program: Program, target: Target, options: Mapping[str, Any], budget: Budget, traced: bool = False
) -> tuple[Manifest, bytes]:
    """Fuse, order, place and emit a simplified program: manifest and object file."""
    plan, assembly = _assembled(program, target, budget, traced)
    code = compile_object(assembly.module.text(), target, options.get("passes"))
    return _manifest(program, plan, assembly), code


def generated_code(program: Program) -> str:
    """The LLVM assembly of a program, to be looked at."""
    _, assembly = _assembled(_simplified(to_primitives(program)), Target.host(), Budget())
    return assembly.module.text()


def _assembled(program: Program, target: Target, budget: Budget, traced: bool = False) -> tuple[Plan, Assembly]:
    with deep_recursion(), budget.fusing():
        plan = plan_program(program, budget.memory)
        return plan, assemble(plan, target, traced)


# -- programs


def _check(program: Program) -> None:
    for op in program.walk():
        if op.dialect not in _DIALECTS:
            where = "" if op.location.is_unknown else f" at {op.location}"
            hint = ": run the pass expand-gradients first" if op.dialect == "ad" else ""
            raise CompileError(f"argosy_cinn cannot compile '{op.name}'{where}{hint}")


def to_primitives(program: Program) -> Program:
    """The program with its operators decomposed; itself where there are none."""
    if not any(op.dialect == "phi" for op in program.walk()):
        return program
    from argosy_phi_ops.passes.decompose import Decompose

    copy = program.clone()
    Decompose().run(copy)
    return copy


def _simplified(program: Program) -> Program:
    with deep_recursion():
        return simplified(program)


# -- manifests


def _manifest(program: Program, plan: Plan, assembly: Assembly) -> Manifest:
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
        if program.symbols()
        else [],
        recomputation=plan.recomputation,
    )


def _call_facts(assembly: Assembly, positions: Mapping[Operation, int]) -> list[CallFacts]:
    return [
        CallFacts(
            i, call.kernel, formula(call.chunks), call.text,
            formula(call.cost.read), formula(call.cost.written), formula(call.cost.operations),
            sorted({positions[v.op] for v in call.made if isinstance(v, OpResult) and v.op in positions}),
        )
        for i, calls in enumerate(assembly.segments)
        for call in calls
    ]  # fmt: skip


def _buffer_facts(plan: Plan, positions: Mapping[Operation, int]) -> list[BufferFacts]:
    own = [life for life in plan.lifetimes if not isinstance(life.key, str)]  # others: inside of loops
    found = sorted(own, key=lambda life: -estimate(life.nbytes))[:_SHOWN_BUFFERS]
    return [BufferFacts(positions[_value(life.key).op], formula(life.nbytes), life.first, life.last) for life in found]


def _value(key: Any) -> Any:
    """The value that a buffer belongs to; partial results belong to their reduction's."""
    while isinstance(key, (Again, Partial, StripPartial, Spare, Workspace)):
        key = key.value
    return key


def _host_calls(
    program: Program, manifest: Manifest, compile: CompileRegion
) -> tuple[list[HostCall], dict[Value, Place]]:
    """The host calls of a simplified program, and where its values are."""
    operations = list(program.block)
    splats = {
        op.result: constant_array(op.attributes["value"], {}) for op in operations if op.name == "builtin.constant"
    }
    hosts = [HostCall(operations[i], program, splats, compile) for i in manifest.hosts]  # type: ignore[arg-type]
    places: dict[Value, Place] = {}
    for position, index, table_entry, offset in manifest.places:
        value = program.block.arguments[index] if position < 0 else operations[position].results[index]
        places[value] = Place(table_entry, offset)
    return hosts, places


def _constants(manifest: Manifest) -> list[np.ndarray[Any, Any]]:
    from base64 import b64decode

    return [
        np.frombuffer(b64decode(data), numpy_dtype(dtype)).reshape(shape) for dtype, shape, data in manifest.constants
    ]


__all__ = ["CinnCompiler", "compile_static", "generated_code"]

"""The compiler, top down, as the list of its stages.

    executable = CinnCompiler().compile(program, device)
    outputs = executable.run(inputs, states)

A program of operators becomes one of primitives (`argosy_phi_ops.passes.primitives`). Their code is on disk (`store`),
or it is made (`compiled_code`): passes lower the primitives (`pipeline`), groups of them become kernels in an order,
with memory (`plan.planning`), kernels become LLVM (`assembly`) and machine code (`runtime.objects`). Code is linked
into the process (`runtime.loading`), and what calls it is the executable (`executables`).

Options: ``threads`` (for the whole process), ``cache`` (an `ObjectCache`), ``passes`` (LLVM's level, None for none),
``fuel`` (how many optimisations may happen), ``without`` (kinds of them to leave out; see `argosy_cinn.fuel`),
``memory_budget`` (bytes that intermediate values may need: what does not fit is computed again), ``tune`` (measure
how products are cut best; see `argosy_cinn.tuning.tuner`), ``guard`` (end the process where code leaves its memory;
see `argosy_cinn.guard`), ``batch_invariant`` (a row of a product has the same bits whatever rows are beside it, so that
what is served together is what is served alone: products of many rows go by the code of few, and the order of a row's
sum does not depend on what is fused with it), ``winograd`` (whether convolutions may be made by minimal filtering; see
`argosy_cinn.contraction.winograd.transforms`) and ``check_index`` (whether calls refuse indices that are out of range;
see `argosy_cinn.checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from argosy_cinn.compiled_code import attempt, code_of
from argosy_cinn.control import CompileRegion
from argosy_cinn.executable import Executable
from argosy_cinn.executables import executable_of, executables_for_sizes, reloaded_executable
from argosy_cinn.fallback import InterpretedExecutable, explain_failure, interpret_instead, warn_once
from argosy_cinn.fault_localization import name_operations
from argosy_cinn.options import OPTIONS, chosen_options, object_cache
from argosy_cinn.rewrites.decompositions import ExpandDecompositions, calls_library
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.shapes import NotSymbolic
from argosy_cinn.specialise import CodeForSizes, SpecialisingExecutable
from argosy_cinn.store.preparation import Outcomes, Preparation, PreparedProgram
from argosy_cinn.target import Target
from argosy_cinn.tools.dump import is_dumping, record, record_sizes
from argosy_hwadapt import Device
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.passes.device_assignment import devices_named, spans_devices
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.interpreter import communicator_table
from argosy_pir.passes import print_pipeline
from argosy_pir.program import Program
from argosy_tensorcore.storage import host_device

_DIALECTS = frozenset({"prim", "builtin", "control", "phi"})


class CinnCompiler:
    """Compiles programs of operators, primitives and control flow for the host."""

    name = "cinn"
    options = OPTIONS

    def passes(self) -> str:
        """The passes that a program goes through, as the text of a pipeline."""
        from argosy_cinn.pipeline import compiler_passes  # a process that finds all its programs never loads it

        return print_pipeline(compiler_passes(Target.host()))

    def compile(
        self,
        program: Program,
        device: Device,
        communicators: Any = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """An executable of ``program``, which is left as it is; for a device that is no host, of launches.

        A program with symbolic sizes is compiled once for all of them; where that cannot be, for each combination at
        its first call (see `specialise`). Raises `CompileError` for operations that are no primitives, naming the
        user's line, and ``ValueError`` for unknown options. A program that code generation fails on runs on the
        reference interpreter, with a warning.
        """
        if spans_devices(program):
            return self._compile_multi_device(program, device, communicators, options)
        if not device.is_host:
            program = _for_buffers(program, [device], communicators, options)
            here = lambda host: self.compile(program, host, communicators, options)  # noqa: E731
            return _launches_for(self, device, lambda: program, communicators, options, here)
        compilation = _Compilation(program, device, communicator_table(communicators), chosen_options(options))
        _check(program)
        return compilation.for_open_sizes() if program.symbols() else compilation.for_known_sizes(program)

    def compile_prepared(
        self,
        program: Program,
        preparation: Preparation,
        device: Device,
        communicators: Any = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """`compile` after ``preparation``, which changes ``program``: at once, or, where the outcome is in the cache,
        when somebody asks for the executable's program."""
        if spans_devices(program):
            return self.compile(PreparedProgram(program, preparation)(), device, communicators, options)
        if not device.is_host and communicators:
            return self.compile(PreparedProgram(program, preparation)(), device, communicators, options)
        if not device.is_host:
            here = lambda host: self.compile_prepared(program, preparation, host, (), options)  # noqa: E731
            return _launches_for(self, device, PreparedProgram(program, preparation), (), options, here)
        started, chosen = perf_counter(), chosen_options(options)
        store, prepared = object_cache(chosen), PreparedProgram(program, preparation)
        outcomes = Outcomes(program, preparation, store, chosen)
        found = outcomes.find()
        if found is not None:
            try:
                return reloaded_executable(program, prepared, *found, device, communicators, chosen, started)
            except (CodegenError, LookupError, ValueError) as error:  # what was stored is no code for this process
                outcomes.discard()
                reason = f"cached code does not load, and is made again: {explain_failure(error)}"
                warn_once(f"program '{program.name}': {reason}", reason)
        made = self.compile(prepared(), device, communicators, options)
        if isinstance(made, Executable):
            outcomes.note(made.key)
            if outcomes.are_noted and not made.hosts and prepared.pack():
                made.leave_program_to(prepared)
                made.views.simplified.come_from(lambda: to_primitives(prepared(), chosen))
        return made

    def _compile_multi_device(
        self, program: Program, device: Device, communicators: Any, options: Mapping[str, Any] | None
    ) -> Any:
        """The executable of a program that spans devices; of open sizes for each combination that is met."""
        from argosy_cinn.multi_device import MultiDeviceExecutable

        def compile_segment(part: Program, at: Device) -> Any:
            return self.compile(part, at, (), options)

        def compile_static(static: Program) -> Any:
            primitives = to_primitives(static, chosen_options(options))
            table = communicator_table(communicators)
            primitives = _for_buffers(primitives, devices_named(primitives), table, options)
            return MultiDeviceExecutable(static, primitives, device, compile_segment, None, table)

        if program.symbols():
            return SpecialisingExecutable(program, None, "it spans devices", compile_static)
        return compile_static(program)


def _for_buffers(
    program: Program, devices: Iterable[Device], communicators: Any, options: Mapping[str, Any] | None
) -> Program:
    """The program, or its primitives, whose collectives a communicator can do on buffers of the devices, where it takes
    these."""
    from argosy_cinn.collectives import takes_buffers

    if not takes_buffers(devices, communicator_table(communicators)):
        return program
    from argosy_cinn.rewrites.collectives import cut_along_first_axis

    primitives = to_primitives(program, chosen_options(options)).clone()
    cut_along_first_axis(primitives)
    return primitives


def _launches_for(
    compiler: CinnCompiler, device: Device, program: Callable[[], Program], communicators: Any,
    options: Mapping[str, Any] | None, compile: Callable[[Device], Any],
) -> Any:  # fmt: skip
    """The executable of ``program()`` for a device that is no host: a graph where the device takes it whole, launches
    of what ``compile`` makes for the host where it runs that, or of kernels. Raises `CompileError` for a device that
    takes no form of kernels that there is."""
    forms = device.info.kernel_forms
    if hasattr(device.runtime, "supports"):
        from argosy_cinn.graphs import graph_executable

        found = graph_executable(to_primitives(program(), chosen_options(options)), device)
        if found is not None:
            return found
    if "address" in forms:
        from argosy_cinn.launches import LaunchedExecutable

        primitives = to_primitives(program(), chosen_options(options))
        if calls_library(primitives):
            primitives = primitives.clone()
            ExpandDecompositions().run(primitives)
            return LaunchedExecutable(compiler.compile(primitives, host_device(), communicators, options), device)
        return LaunchedExecutable(compile(host_device()), device)
    if {"spirv", "opencl-c", "nest"} & {*forms}:
        from argosy_cinn.simt.executable import SimtExecutable

        _check(program())
        return SimtExecutable(program(), device, communicator_table(communicators), chosen_options(options))
    raise CompileError(
        f"kernels are printed as address, spirv, opencl-c and nest; {device} takes: {', '.join(forms) or 'none'}"
    )


@dataclass(frozen=True, slots=True)
class _Compilation:
    """One compilation: what is compiled, for what, and how."""

    program: Program
    device: Device
    communicators: Mapping[tuple[int, ...], Any]
    options: Mapping[str, Any]

    def for_known_sizes(self, static: Program) -> Executable | InterpretedExecutable:
        """The executable of the program, or of it in numbers."""
        try:
            with own_context():
                return compile_static(static, self.program, self.device, self.communicators, self.options)
        except (CompileError, Warning):  # a warning that the user's filters make an error is no fault of ours
            raise
        except Exception as error:  # noqa: BLE001  (a fault here must not stop a user's program)
            named = name_operations(error, static, lambda part: attempt(part, self.options))
            return interpret_instead(static, self.device, self.communicators, named)

    def for_open_sizes(self) -> SpecialisingExecutable:
        """The executable for all sizes, which compiles for those that its code does not serve."""
        code, reason = None, ""
        try:
            with own_context():
                code = compile_symbolic(self.program, self.device, self.communicators, self.options)
        except NotSymbolic as error:
            reason = str(error)
        except (CompileError, Warning):
            raise
        except CodegenError as error:  # code was made, and LLVM does not take it
            reason = explain_failure(error)
            warn_once(
                f"program '{self.program.name}' has no code for all sizes and is compiled for each of them: {reason}. "
                "This is a fault of argosy_cinn; please report it",
                reason,
            )
        except Exception as error:  # noqa: BLE001  (code for each combination of sizes is there)
            reason = f"{type(error).__name__}: {error}"  # formulas have no order: a choice may compare what is unknown
        made = SpecialisingExecutable(self.program, code, reason, self.for_known_sizes)
        if code is not None and code.folder is not None:
            record_sizes(made, code.folder)
        return made


def compile_static(
    program: Program,
    original: Program,
    device: Device,
    communicators: Mapping[tuple[int, ...], Any],
    options: Mapping[str, Any],
) -> Executable:
    """Compile a program of known shapes. ``original`` is what the executable calls its program."""
    started = perf_counter()
    regions = region_compiler(device, communicators, options)
    primitives = to_primitives(program, options)
    code = code_of(primitives, options)
    try:
        made = executable_of(code, primitives, original, device, communicators, regions, started)
    except Exception:
        if not code.library.cache_hit:
            raise
        object_cache(options).discard(code.key)  # an entry that says what cannot be
        code = code_of(primitives, options)
        made = executable_of(code, primitives, original, device, communicators, regions, started)
    if is_dumping():
        record(made, code.dump(program, primitives, original.name, options))
    code.simplified.forget()
    return made


def compile_symbolic(
    program: Program, device: Device, communicators: Mapping[tuple[int, ...], Any], options: Mapping[str, Any]
) -> CodeForSizes:
    """Compile a program for all its sizes. Raises `NotSymbolic` where a choice depends on them."""
    started = perf_counter()
    primitives = to_primitives(program, options)
    code = code_of(primitives, options)
    folder = code.dump(program, primitives, program.name, options) if is_dumping() else None
    code.simplified.forget()
    return CodeForSizes(executables_for_sizes(code, program, primitives, device, communicators, started), folder)


def region_compiler(
    device: Device, communicators: Mapping[tuple[int, ...], Any], options: Mapping[str, Any]
) -> CompileRegion:
    """What compiles the bodies of branches and loops that are driven from Python."""
    return lambda region: compile_static(region, region, device, communicators, options).bind(())


def _check(program: Program) -> None:
    for op in program.walk():
        if op.dialect not in _DIALECTS:
            where = op.location.suffix
            hint = ": run the pass expand-gradients first" if op.dialect == "ad" else ""
            raise CompileError(f"argosy_cinn cannot compile '{op.name}'{where}{hint}")


__all__ = ["CinnCompiler", "compile_static", "region_compiler"]

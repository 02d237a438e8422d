"""The compiler, top down: operators to primitives, simplify, fuse, order and place, emit, load.

    executable = CinnCompiler().compile(program, device)
    outputs = executable.run(inputs, states)

Options: ``threads`` (for the whole process), ``cache`` (an `ObjectCache`), ``passes`` (LLVM's level, None for none),
``fuel`` (how many optimisations may happen), ``without`` (kinds of them to leave out; see `argosy_cinn.fuel`),
``memory_budget`` (bytes that intermediate values may need: what does not fit is computed again), ``tune`` (measure
how products are cut best; see `argosy_cinn.tuning.tuner`), ``guard`` (end the process where code leaves its memory;
see `argosy_cinn.guard`), ``winograd`` (whether convolutions may be made by minimal filtering; see
`argosy_cinn.contraction.winograd.transforms`) and ``check_index`` (whether calls refuse indices that are out of range;
see `argosy_cinn.checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from argosy_cinn.control import CompileRegion
from argosy_cinn.executable import Executable, Views
from argosy_cinn.fallback import InterpretedExecutable, interpreted
from argosy_cinn.fault_localization import name_operations
from argosy_cinn.fuel import Budget
from argosy_cinn.host import HostCall
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.sizes import SizeFormulas, known_sizes
from argosy_cinn.rewrites.decomposition import to_primitives
from argosy_cinn.runtime import ObjectCache, default_cache, set_threads
from argosy_cinn.runtime.entry import AnsweringEntry, answering_entry
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.loading import link_program
from argosy_cinn.runtime.trace import Trace
from argosy_cinn.shapes import NotSymbolic
from argosy_cinn.simplified import Simplified
from argosy_cinn.specialise import CodeForSizes, SpecialisingExecutable
from argosy_cinn.store import program_cache
from argosy_cinn.store.preparation import Outcomes, Preparation, Prepared
from argosy_cinn.store.program_cache import Manifest
from argosy_cinn.target import Target
from argosy_cinn.tools import tracing
from argosy_cinn.tools.dump import dump, dumping, record, record_sizes
from argosy_cinn.tools.explanation import size
from argosy_hwadapt import Device
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.interpreter import communicator_table
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_phi_ops.settings import code_key
from argosy_phi_ops.user_line import warn_user
from argosy_pir.garbage import uncollected
from argosy_pir.passes import print_pipeline
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.storage import Strided, host_device

_OPTIONS = frozenset({
    "threads", "cache", "passes", "fuel", "without", "memory_budget", "tune", "guard", "winograd", "check_index",
})  # fmt: skip
_DIALECTS = frozenset({"prim", "builtin", "control", "phi"})


class CinnCompiler:
    """Compiles programs of operators, primitives and control flow for the host."""

    name = "cinn"

    def passes(self) -> str:
        """The passes that a program of primitives goes through, as the text of a pipeline."""
        from argosy_cinn.pipeline import lowering_passes  # a process that finds all its programs never loads it

        return print_pipeline(lowering_passes(Target.host()))

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
        if not device.is_host:
            return _launched(device, lambda host: self.compile(program, host, communicators, options))
        chosen = _chosen(options)
        _check(program)
        table = communicator_table(communicators)

        def static(program: Program, original: Program) -> Executable | InterpretedExecutable:
            try:
                with own_context():
                    return compile_static(program, original, device, table, chosen)
            except (CompileError, Warning):  # a warning that the user's filters make an error is no fault of ours
                raise
            except Exception as error:  # noqa: BLE001  (a fault here must not stop a user's program)
                named = name_operations(error, program, lambda part: attempt(part, chosen))
                return interpreted(original if original.symbols() == () else program, device, table, named)

        if not program.symbols():
            return static(program, program)
        code, reason = None, ""
        try:
            with own_context():
                code = compile_symbolic(program, device, table, chosen)
        except NotSymbolic as error:
            reason = str(error)
        except (CompileError, Warning):
            raise
        except Exception as error:  # noqa: BLE001  (code for each combination of sizes is there)
            reason = f"{type(error).__name__}: {error}"  # formulas have no order: a choice may compare what is unknown
        made = SpecialisingExecutable(program, code, reason, lambda numbers: static(numbers, program))
        if code is not None and code.folder is not None:
            record_sizes(made, code.folder)
        return made

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
        if not device.is_host:
            return _launched(device, lambda host: self.compile_prepared(program, preparation, host, (), options))
        started, chosen = perf_counter(), _chosen(options)
        store, prepared = _store(chosen), Prepared(program, preparation)
        outcomes = Outcomes(program, preparation, store, chosen)
        found = outcomes.find()
        if found is not None:
            try:
                return _reloaded(program, prepared, *found, device, communicators, chosen, started)
            except Exception:  # noqa: BLE001  (what was stored is no code for this process)
                pass
        made = self.compile(prepared(), device, communicators, options)
        if isinstance(made, Executable):
            outcomes.note(made.key)
            if outcomes.are_noted and not made.hosts and prepared.pack():
                made.leave_program_to(prepared)
                made.views.simplified.come_from(lambda: to_primitives(prepared(), chosen))
        return made


def _launched(device: Device, compile: Callable[[Device], Any]) -> Any:
    """What ``compile`` makes for the host, as launches on another device. Raises `CompileError` for one that takes no
    kernels that are printed here."""
    from argosy_cinn.launches import LaunchedExecutable

    return LaunchedExecutable(compile(host_device()), device)


def _chosen(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options. Raises ValueError for unknown ones."""
    chosen = dict(options or {})
    if not chosen.keys() <= _OPTIONS:
        unknown = sorted(chosen.keys() - _OPTIONS)
        raise ValueError(f"unknown options {unknown}; there are: {', '.join(sorted(_OPTIONS))}")
    if "threads" in chosen:
        set_threads(chosen["threads"])
    Budget.of(chosen)  # refuses what it does not know
    code_key(chosen)  # so does this
    return chosen


def _reloaded(
    program: Program, prepared: Prepared, manifest: Manifest, code: bytes, device: Device, communicators: Any,
    options: Mapping[str, Any], started: float,
) -> Executable:  # fmt: skip
    """The executable of what was compiled earlier, of a program that is prepared when somebody looks at it."""
    budget = Budget.of(options)
    simplified = Simplified(lambda: to_primitives(prepared(), options), budget)
    simplified.forget()
    prepared.pack()
    library = link_program(code, manifest.entries, cache_hit=True)
    _warn_of_memory(program.name, manifest)
    found = _loaded(manifest, library, simplified, options, budget)
    executable = Executable(
        program, program, device, library, found.entries, [], {}, _constants(manifest), manifest,
        communicator_table(communicators), _facts(found, started), found.views, known_sizes(program, manifest),
        prepared,
    )  # fmt: skip
    tracing.register(executable)
    return executable


def compile_static(
    static: Program,
    original: Program,
    device: Device,
    communicators: Mapping[tuple[int, ...], Any],
    options: Mapping[str, Any],
) -> Executable:
    """Compile a program of known shapes. ``original`` is what the executable calls its program."""
    started = perf_counter()
    static = to_primitives(static, options)
    code = _code_of(static, options)
    try:
        return _executable(code, static, original, device, communicators, options, started)
    except Exception:
        if not code.library.cache_hit:
            raise
        _store(options).discard(code.key)  # an entry that says what cannot be
        return _executable(_code_of(static, options), static, original, device, communicators, options, started)


def _executable(
    code: _Code, static: Program, original: Program, device: Device,
    communicators: Mapping[tuple[int, ...], Any], options: Mapping[str, Any], started: float,
) -> Executable:  # fmt: skip
    manifest, simplified = code.manifest, code.simplified

    def compile_region(region: Program) -> Callable[[Sequence[Strided]], list[Strided]]:
        return compile_static(region, region, device, communicators, options).bind(())

    hosts, places = _host_calls(simplified(), manifest, compile_region) if manifest.hosts else ([], {})
    executable = Executable(
        original, static, device, code.library, code.entries, hosts, places, _constants(manifest), manifest,
        communicators, _facts(code, started), code.views, known_sizes(static, manifest),
    )  # fmt: skip
    executable.key = code.key
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
    static = to_primitives(program, options)
    code = _code_of(static, options)
    folder = code.dump(static, program.name) if dumping() else None
    code.simplified.forget()
    made = _for_sizes(code, program, static, device, communicators, started)

    def executable(symbols: Mapping[str, int]) -> Executable | None:
        found = made(symbols)
        if found is not None:
            tracing.register(found)
        return found

    return CodeForSizes(executable, folder)


def _for_sizes(
    code: _Code, program: Program, static: Program, device: Device, communicators: Mapping[tuple[int, ...], Any],
    started: float,
) -> Callable[[Mapping[str, int]], Executable | None]:  # fmt: skip
    """What makes the executables of code for all sizes; None for sizes that it does not serve."""
    manifest, facts, constants = code.manifest, _facts(code, started), _constants(code.manifest)
    values = [*static.block.arguments, *(r for op in static.walk() for r in op.results)]
    formulas = SizeFormulas(static, manifest, list({v.shape: None for v in values if isinstance(v.type, TensorType)}))

    def executable(symbols: Mapping[str, int]) -> Executable | None:
        sizes = formulas.at(symbols)
        return None if sizes is None else Executable(
            program, static, device, code.library, code.entries, [], {}, constants, manifest, communicators,
            {**facts, "arena_bytes": sizes.arena_bytes}, code.views, sizes,
        )  # fmt: skip

    return executable


@dataclass(slots=True)
class _Code:
    """Loaded code, and what it was made from."""

    manifest: Manifest
    entries: list[AnsweringEntry]
    simplified: Simplified
    views: Views
    library: Library
    budget: Budget
    key: str

    def dump(self, program: Program, name: str) -> Path:
        """Write all stages; returns the folder."""
        from argosy_cinn.assembly.building import assembled
        from argosy_cinn.pipeline import lowered

        simplified = self.simplified()
        _, assembly = assembled(simplified, Target.host(), self.budget)
        folder = dump(name, program, simplified, self.manifest, self.library.code, assembly.module.text())
        with own_context(), self.budget.simplifying():
            lowered(program, Target.host(), folder / "passes")
        return folder


def _code_of(static: Program, options: Mapping[str, Any]) -> _Code:
    """The code of a program of primitives: from the cache, or made now."""
    target, budget = Target.host(), Budget.of(options)
    store = _store(options)
    key = program_cache.program_key(static, target, options)
    simplified = Simplified(lambda: static, budget)

    def made() -> tuple[Manifest, bytes]:
        from argosy_cinn.assembly.building import build  # a process that finds all its programs never loads it

        with uncollected():
            manifest, code = build(simplified(), target, options, budget)
        program_cache.keep(store, key, manifest, code)
        return manifest, code

    found = program_cache.find(store, key)
    manifest, code = found or made()
    try:
        library = link_program(code, manifest.entries, cache_hit=found is not None)
    except (CodegenError, ValueError, LookupError):
        if found is None:
            raise
        manifest, code = made()  # what was stored is no code for this process
        library = link_program(code, manifest.entries)
    budget.settle()
    _warn_of_memory(static.name, manifest)
    return _loaded(manifest, library, simplified, options, budget, key)


def attempt(program: Program, options: Mapping[str, Any]) -> None:
    """Make the code of a program, and throw it away. Raises whatever goes wrong."""
    from argosy_cinn.assembly.building import build
    from argosy_cinn.pipeline import lowered

    budget = Budget.of(options)
    with own_context(), budget.simplifying():
        simplified = lowered(to_primitives(program, options), Target.host())
    build(simplified, Target.host(), options, budget)


def _store(options: Mapping[str, Any]) -> ObjectCache:
    """Where compiled programs are kept. What is found there was made under other limits, and leaves no trace."""
    fresh = Budget.of(options).process or dumping()
    return options.get("cache") or (ObjectCache(None) if fresh else default_cache())


def _warn_of_memory(name: str, manifest: Manifest) -> None:
    done = manifest.recomputation
    if done is not None and manifest.arena_bytes > done.budget:
        warn_user(
            f"program '{name}' needs {size(manifest.arena_bytes)} for intermediate values however much is computed "
            f"again, more than the memory budget of {size(done.budget)} (without a budget {size(done.peak_before)})",
            RuntimeWarning,
        )


def _loaded(
    manifest: Manifest, library: Library, simplified: Simplified, options: Mapping[str, Any], budget: Budget,
    key: str = "",
) -> _Code:  # fmt: skip
    def instrumented() -> tuple[list[AnsweringEntry], Trace]:
        from argosy_cinn.assembly.building import build

        trace = Trace()
        again, code = build(simplified(), Target.host(), options, budget, traced=True)
        traced = link_program(code, again.entries, symbols=trace.symbols)
        return [answering_entry(traced, name) for name in again.entries], trace

    entries = [answering_entry(library, name) for name in manifest.entries]
    return _Code(manifest, entries, simplified, Views(simplified, instrumented), library, budget, key)


def load_compiled(
    program: Program, manifest: Manifest, data: bytes, device: Device, symbols: Mapping[str, int] | None = None
) -> Executable:
    """The executable of a simplified program whose manifest and machine code are at hand, as in a dump; ``symbols``:
    its sizes, where it has such."""
    started, budget = perf_counter(), Budget(0)
    code = _loaded(manifest, link_program(data, manifest.entries), Simplified(lambda: program, budget), {}, budget)
    if manifest.symbols:
        found = _for_sizes(code, program, program, device, {}, started)(symbols or {})
        if found is None:
            raise ValueError(f"code for all sizes does not serve {dict(symbols or {})}: a tensor is empty or too large")
        return found

    def compile_region(region: Program) -> Callable[[Sequence[Strided]], list[Strided]]:
        return compile_static(region, region, device, {}, {}).bind(())

    hosts, places = _host_calls(code.simplified(), manifest, compile_region)
    return Executable(
        program, program, device, code.library, code.entries, hosts, places, _constants(manifest), manifest, {},
        _facts(code, started), code.views, known_sizes(program, manifest),
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


# -- programs


def _check(program: Program) -> None:
    for op in program.walk():
        if op.dialect not in _DIALECTS:
            where = "" if op.location.is_unknown else f" at {op.location}"
            hint = ": run the pass expand-gradients first" if op.dialect == "ad" else ""
            raise CompileError(f"argosy_cinn cannot compile '{op.name}'{where}{hint}")


# -- host calls


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


__all__ = ["CinnCompiler", "compile_static"]

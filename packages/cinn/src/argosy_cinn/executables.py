"""Executables made of compiled code: of programs of known sizes, for all sizes, and of what was found on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np

from argosy_cinn.compiled_code import CompiledCode, loaded_code, warn_of_memory
from argosy_cinn.control import CompileRegion
from argosy_cinn.executable import Executable
from argosy_cinn.fuel import Budget
from argosy_cinn.host import HostCall
from argosy_cinn.normal_form import NormalForm
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.sizes import SizeFormulas, make_sizes
from argosy_cinn.runtime.loading import link_program
from argosy_cinn.store.preparation import PreparedProgram
from argosy_cinn.store.program_cache import Manifest
from argosy_cinn.tools import tracing
from argosy_hwadapt import Device
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.interpreter import communicator_table
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value


def executable_of(
    code: CompiledCode, primitives: Program, original: Program, device: Device,
    communicators: Mapping[tuple[int, ...], Any], compile_region: CompileRegion, started: float,
) -> Executable:  # fmt: skip
    """The executable of a program of known sizes. ``original`` is what it calls its program."""
    manifest = code.manifest
    hosts, places = _host_calls(code.simplified(), manifest, compile_region) if manifest.hosts else ([], {})
    executable = Executable(
        original, primitives, device, code.library, code.entries, hosts, places, _constants(manifest), manifest,
        communicators, _facts(code, started), code.views, make_sizes(primitives, manifest),
    )  # fmt: skip
    executable.key = code.key
    tracing.register(executable)
    return executable


def executables_for_sizes(
    code: CompiledCode, program: Program, primitives: Program, device: Device,
    communicators: Mapping[tuple[int, ...], Any], started: float,
) -> Callable[[Mapping[str, int]], Executable | None]:  # fmt: skip
    """What makes the executables of code for all sizes; None for sizes that it does not serve."""
    manifest, facts, constants = code.manifest, _facts(code, started), _constants(code.manifest)
    values = [*primitives.block.arguments, *(r for op in primitives.walk() for r in op.results)]
    shapes = list({v.shape: None for v in values if isinstance(v.type, TensorType)})
    formulas = SizeFormulas(primitives, manifest, shapes)

    def executable(symbols: Mapping[str, int]) -> Executable | None:
        sizes = formulas.sizes_at(symbols)
        if sizes is None:
            return None
        made = Executable(
            program, primitives, device, code.library, code.entries, [], {}, constants, manifest, communicators,
            {**facts, "arena_bytes": sizes.arena_bytes}, code.views, sizes,
        )  # fmt: skip
        tracing.register(made)
        return made

    return executable


def reloaded_executable(
    program: Program, prepared: PreparedProgram, manifest: Manifest, code: bytes, device: Device, communicators: Any,
    options: Mapping[str, Any], started: float,
) -> Executable:  # fmt: skip
    """The executable of what was compiled earlier, of a program that is prepared when somebody looks at it."""
    budget = Budget.from_options(options)
    simplified = NormalForm(lambda: to_primitives(prepared(), options), budget)
    simplified.forget()
    prepared.pack()
    library = link_program(code, manifest.entries, cache_hit=True)
    warn_of_memory(program.name, manifest)
    found = loaded_code(manifest, library, simplified, options, budget)
    executable = Executable(
        program, program, device, library, found.entries, [], {}, _constants(manifest), manifest,
        communicator_table(communicators), _facts(found, started), found.views, make_sizes(program, manifest),
        prepared,
    )  # fmt: skip
    tracing.register(executable)
    return executable


def load_compiled(
    program: Program, manifest: Manifest, data: bytes, device: Device, compile_region: CompileRegion,
    symbols: Mapping[str, int] | None = None,
) -> Executable:  # fmt: skip
    """The executable of a simplified program whose manifest and machine code are at hand, as in a dump; ``symbols``:
    its sizes, where it has such."""
    started, budget = perf_counter(), Budget(0)
    code = loaded_code(manifest, link_program(data, manifest.entries), NormalForm(lambda: program, budget), {}, budget)
    if manifest.symbols:
        found = executables_for_sizes(code, program, program, device, {}, started)(symbols or {})
        if found is None:
            raise ValueError(f"code for all sizes does not serve {dict(symbols or {})}: a tensor is empty or too large")
        return found
    hosts, places = _host_calls(code.simplified(), manifest, compile_region)
    return Executable(
        program, program, device, code.library, code.entries, hosts, places, _constants(manifest), manifest, {},
        _facts(code, started), code.views, make_sizes(program, manifest),
    )  # fmt: skip


def _facts(code: CompiledCode, started: float) -> dict[str, Any]:
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


__all__ = ["executable_of", "executables_for_sizes", "load_compiled", "reloaded_executable"]

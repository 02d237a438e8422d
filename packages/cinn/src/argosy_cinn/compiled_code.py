"""Compiled code of a program of primitives: found on disk, or lowered, planned, emitted and compiled; then linked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy_cinn.executable import Views
from argosy_cinn.fuel import Budget
from argosy_cinn.normal_form import NormalForm
from argosy_cinn.options import object_cache
from argosy_cinn.runtime.entry import AnsweringEntry, answering_entry
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.loading import link_program
from argosy_cinn.runtime.trace import Trace
from argosy_cinn.store import program_cache
from argosy_cinn.store.program_cache import Manifest
from argosy_cinn.target import Target
from argosy_cinn.tools.dump import dump
from argosy_cinn.tools.explanation import size
from argosy_phi_ops.context import own_context
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.user_line import warn_user
from argosy_pir.garbage import pause_collection
from argosy_pir.program import Program


@dataclass(slots=True)
class CompiledCode:
    """Loaded code, and what it was made from."""

    manifest: Manifest
    entries: list[AnsweringEntry]
    simplified: NormalForm
    views: Views
    library: Library
    budget: Budget
    key: str

    def dump(self, given: Program, program: Program, name: str, options: Mapping[str, Any]) -> Path:
        """Write all stages, from the program that was ``given`` and its primitives on; returns the folder."""
        from argosy_cinn.assembly.building import assemble_program
        from argosy_cinn.pipeline import dump_passes

        simplified = self.simplified()
        _, assembly = assemble_program(simplified, Target.host(), self.budget)
        folder = dump(name, program, simplified, self.manifest, self.library.code, assembly.module.text())
        with own_context(), self.budget.simplification():
            dump_passes(given, Target.host(), options, folder / "passes")
        return folder


def code_of(static: Program, options: Mapping[str, Any]) -> CompiledCode:
    """The code of a program of primitives: from the cache, or made now."""
    target, budget = Target.host(), Budget.from_options(options)
    store = object_cache(options)
    key = program_cache.program_key(static, target, options)
    simplified = NormalForm(lambda: static, budget)

    def make_code() -> tuple[Manifest, bytes]:
        from argosy_cinn.assembly.building import build  # a process that finds all its programs never loads it

        with pause_collection():
            manifest, code = build(simplified(), target, options, budget)
        program_cache.keep(store, key, manifest, code)
        return manifest, code

    found = program_cache.find(store, key)
    manifest, code = found or make_code()
    try:
        library = link_program(code, manifest.entries, cache_hit=found is not None)
    except (CodegenError, ValueError, LookupError):
        if found is None:
            raise
        manifest, code = make_code()  # what was stored is no code for this process
        library = link_program(code, manifest.entries)
    budget.settle()
    warn_of_memory(static.name, manifest)
    return loaded_code(manifest, library, simplified, options, budget, key)


def attempt(program: Program, options: Mapping[str, Any]) -> None:
    """Make the code of a program, and throw it away. Raises whatever goes wrong."""
    from argosy_cinn.assembly.building import build
    from argosy_cinn.pipeline import lower_program

    budget = Budget.from_options(options)
    with own_context(), budget.simplification():
        simplified = lower_program(to_primitives(program, options), Target.host())
    build(simplified, Target.host(), options, budget)


def warn_of_memory(name: str, manifest: Manifest) -> None:
    done = manifest.recomputation
    if done is not None and manifest.arena_bytes > done.budget:
        warn_user(
            f"program '{name}' needs {size(manifest.arena_bytes)} for intermediate values however much is computed "
            f"again, more than the memory budget of {size(done.budget)} (without a budget {size(done.peak_before)})",
            RuntimeWarning,
        )


def loaded_code(
    manifest: Manifest, library: Library, simplified: NormalForm, options: Mapping[str, Any], budget: Budget,
    key: str = "",
) -> CompiledCode:  # fmt: skip
    def instrument_code() -> tuple[list[AnsweringEntry], Trace]:
        from argosy_cinn.assembly.building import build

        trace = Trace()
        again, code = build(simplified(), Target.host(), options, budget, traced=True)
        traced = link_program(code, again.entries, symbols=trace.symbols)
        return [answering_entry(traced, name) for name in again.entries], trace

    entries = [answering_entry(library, name) for name in manifest.entries]
    return CompiledCode(manifest, entries, simplified, Views(simplified, instrument_code), library, budget, key)


__all__ = ["CompiledCode", "attempt", "code_of", "loaded_code", "warn_of_memory"]

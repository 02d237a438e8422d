"""From a program of primitives to machine code: what is loaded when something is compiled, and not when it is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.assembly.assemble import Assembly, assemble
from argosy_cinn.assembly.manifests import manifest_from
from argosy_cinn.fuel import Budget
from argosy_cinn.loops.schedule import batch_invariant
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.planning import plan_program
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.printers.llvm import Module
from argosy_cinn.recursion import deep_recursion
from argosy_cinn.runtime.objects import compile_objects
from argosy_cinn.runtime.workers import default_threads
from argosy_cinn.settings import CODEGEN_LEVEL
from argosy_cinn.store.program_cache import Manifest
from argosy_cinn.target import Target
from argosy_cinn.tuning.tuner import tune
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_pir.program import Program

#: Lines of LLVM assembly that are worth a module of their own.
_LEAST_LINES = 2000


def build(
    program: Program, target: Target, options: Mapping[str, Any], budget: Budget, traced: bool = False
) -> tuple[Manifest, bytes]:
    """Fuse, order, place and emit a simplified program: manifest and object file."""
    with tune(options):
        plan, assembly = assemble_program(program, target, budget, traced)
    passes = options.get("passes")
    texts = assembly.module.texts(_parts(assembly.module) if passes is None else 1)
    code = compile_objects(texts, target, passes, CODEGEN_LEVEL.resolve(options))
    return manifest_from(program, plan, assembly), code


def _parts(module: Module) -> int:
    """In how many parts a module is compiled, each on a thread: long ones, since each has a cost of its own."""
    return max(1, min(default_threads(), module.lines() // _LEAST_LINES))


def generated_code(program: Program) -> str:
    """The LLVM assembly of a program, to be looked at; under the limits that the environment sets."""
    _, assembly = assemble_program(
        lower_program(to_primitives(program), Target.host()), Target.host(), Budget.from_options({})
    )
    return assembly.module.text()


def assemble_program(
    program: Program, target: Target, budget: Budget, traced: bool = False
) -> tuple[ExecutionPlan, Assembly]:
    """The plan of a simplified program, and its LLVM module."""
    token = batch_invariant.set(budget.invariant)
    try:
        with deep_recursion(), budget.fusion():
            plan = plan_program(program, target, budget.memory, budget.guard)
            return plan, assemble(plan, target, traced)
    finally:
        batch_invariant.reset(token)


__all__ = ["assemble_program", "build", "generated_code"]

"""The compiler, top down: operators to primitives, simplify, fuse, order and place, emit, load.

    executable = CinnCompiler().compile(program, device)
    outputs = executable.run(inputs, states)

Options: ``threads`` (for the whole process), ``cache`` (an `ObjectCache`), ``passes`` (LLVM's level, None for none),
``fuel`` (how many fusions may happen: to find one that is wrong).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from argosy_cinn.assemble import assemble
from argosy_cinn.executable import Executable
from argosy_cinn.explanation import describe_assembly
from argosy_cinn.fusion.cost import Memory
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.host import HostCall
from argosy_cinn.runtime import entry, load, set_threads
from argosy_cinn.simplify import simplify
from argosy_cinn.specialise import SpecialisingExecutable
from argosy_cinn.steps import make_plan
from argosy_cinn.target import Target
from argosy_hwadapt import Device
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.interpreter import communicator_table, constant_array
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import BlockArgument, OpResult, Value

_OPTIONS = frozenset({"threads", "cache", "passes", "fuel"})
_DIALECTS = frozenset({"prim", "builtin", "control", "phi"})


class CinnCompiler:
    """Compiles programs of operators, primitives and control flow for the host."""

    name = "cinn"

    def compile(
        self,
        program: Program,
        device: Device,
        communicators: Any = (),
        options: Mapping[str, Any] | None = None,
    ) -> Executable | SpecialisingExecutable:
        """An executable of ``program``, which is left as it is.

        Programs with symbolic sizes are compiled for each combination of sizes at its first call. Raises
        `CompileError` for operations that are no primitives, naming the user's line, and ``ValueError`` for
        unknown options.
        """
        chosen = dict(options or {})
        if not chosen.keys() <= _OPTIONS:
            raise ValueError(
                f"unknown options {sorted(chosen.keys() - _OPTIONS)}; there are: {', '.join(sorted(_OPTIONS))}"
            )
        if not hasattr(device, "adopt") or device.name == "virtual":
            raise CompileError(f"argosy_cinn compiles for host devices only, not for {device.name!r}")
        if "threads" in chosen:
            set_threads(chosen["threads"])
        _check(program)
        table = communicator_table(communicators)
        if program.symbols():
            return SpecialisingExecutable(
                program, lambda static: compile_static(static, program, device, table, chosen)
            )
        return compile_static(program.clone(), program, device, table, chosen)


def compile_static(
    static: Program,
    original: Program,
    device: Device,
    communicators: Mapping[tuple[int, ...], Any],
    options: Mapping[str, Any],
) -> Executable:
    """Compile a program of known shapes, which is rewritten. ``original`` is what the executable calls its program."""
    started = perf_counter()
    with _deep_recursion():
        to_primitives(static)
        simplify(static)
        own_results(static)
        memory = Memory(static)
        fusion = Fusion(memory, options.get("fuel", 1 << 62))
        plan = make_plan(memory, fusion)
        assembly = assemble(plan, Target.host())
    module = assembly.module
    library = load(
        module.text(), module.exports, module.target, passes=options.get("passes"), cache=options.get("cache")
    )
    entries = [entry(library, f"segment{i}") for i in range(len(assembly.segments))]
    splats = {
        op.result: constant_array(op.attributes["value"], {}) for op in static.block if op.name == "builtin.constant"
    }
    hosts = [HostCall(op, static, splats) for op in assembly.hosts]
    host_calls: dict[str, int] = {}
    for op in assembly.hosts:
        host_calls[op.name] = host_calls.get(op.name, 0) + 1
    facts = {
        "kernels": len(assembly.kernels),
        "kernel_calls": sum(map(len, assembly.segments)),
        "host_calls": host_calls,
        "compile_seconds": perf_counter() - started,
        "cache_hit": library.cache_hit,
    }
    constants = [np.ascontiguousarray(splats[v]) for v in plan.constants]
    values = {k: place for k, place in plan.places.items() if isinstance(k, Value)}
    made = Executable(
        original, static, device, entries, hosts, values, constants, plan.arena_bytes, communicators, facts
    )
    made.describe = lambda: describe_assembly(assembly, plan)
    made.code = module.text
    return made


def _check(program: Program) -> None:
    for op in program.walk():
        if op.dialect not in _DIALECTS:
            where = "" if op.location.is_unknown else f" at {op.location}"
            hint = ": run the pass expand-gradients first" if op.dialect == "ad" else ""
            raise CompileError(f"argosy_cinn cannot compile '{op.name}'{where}{hint}")


def to_primitives(program: Program) -> None:
    """Decompose operators."""
    if any(op.dialect == "phi" for op in program.walk()):
        from argosy_phi_ops.passes.decompose import Decompose

        Decompose().run(program)


def own_results(program: Program) -> None:
    """Give every output and new state a value of its own: what is returned twice, or as it came, is copied."""
    block = program.block
    last = block.last
    assert last is not None
    kept = {id(state.argument): i for i, state in enumerate(program.states)}
    outputs = len(last.operands) - len(program.states)
    seen: set[Value] = set()
    for i in range(len(last.operands) - 1, -1, -1):  # states first: an output that is a state's new value is the copy
        value = last.operand(i)
        unchanged = i >= outputs and kept.get(id(value)) == i - outputs
        if unchanged:
            continue
        if value in seen or isinstance(value, BlockArgument) or _is_constant(value):
            copy = Operation("prim.copy", (value,), (value.type,), location=last.location)
            block.insert_before(last, copy)
            last.set_operand(i, copy.result)
        seen.add(value)


def _is_constant(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == "builtin.constant"


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Expressions are walked recursively, and a long chain of operations is a deep one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


Compile = Callable[[Program], Executable]
__all__ = ["CinnCompiler", "Sequence", "compile_static"]

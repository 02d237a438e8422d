"""From LLVM text to object files.

Generated kernels are explicit vector code, so by default no IR pass runs (``passes=None``) and only the code
generator's own optimisations apply: half the compile time at the same speed. LLVM work is serialised by llvmlite's
lock.
"""

from __future__ import annotations

from typing import Any

from argosy_cinn.call_once import LLVM, call_once_in_llvm
from argosy_cinn.target import Target


class CodegenError(RuntimeError):
    """LLVM refused a module: a fault of the generator. ``text`` holds the module where it is known."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


def compile_object(text: str, target: Target, passes: int | None = None) -> bytes:
    """Position-independent object file (ELF, Mach-O or COFF) of a module."""
    with LLVM:
        machine = target_machine(target)
        return bytes(machine.emit_object(parse_module(text, target, machine, passes)))


def compile_assembly(text: str, target: Target, passes: int | None = None) -> str:
    """The module as assembly, to be looked at."""
    with LLVM:
        machine = target_machine(target)
        return str(machine.emit_assembly(parse_module(text, target, machine, passes)))


def parse_module(text: str, target: Target, machine: Any, passes: int | None) -> Any:
    """A module of a context of its own, verified, and optimised at the level ``passes``."""
    llvm = initialized_llvm()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM refused generated code: {error}", text) from error
    if passes is not None:
        options = llvm.create_pipeline_tuning_options(speed_level=passes)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return module


def target_machine(target: Target, level: int = 2) -> Any:
    """A code generator that optimises as much as LLVM's ``level`` (0 to 3) says: cheap to make, and not safe to share
    between threads."""
    llvm = initialized_llvm()
    if target.family != target.host().family:
        _initialize_foreign()
    # LLVM makes two instructions of vpdpwssd for the latency of a chain of them: what is here has several chains.
    features = f"{target.features},+fast-dpwssd" if target.has("avx512vnni") else target.features
    factory = llvm.Target.from_triple(target.triple)
    return factory.create_target_machine(cpu=target.cpu, features=features, opt=level, reloc="pic", codemodel="small")


@call_once_in_llvm
def initialized_llvm() -> Any:
    """``llvmlite.binding`` with the native target ready. Code of level 0 is not selected by LLVM's quick selector: of a
    load of 4 bytes that a blend reads it makes one of 16."""
    import llvmlite.binding as llvm

    llvm.set_option("argosy", "-fast-isel=0")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@call_once_in_llvm
def _initialize_foreign() -> None:
    """Make LLVM's other code generators ready, which takes a moment."""
    llvm = initialized_llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()

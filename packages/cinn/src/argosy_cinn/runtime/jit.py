"""From LLVM text to callable machine code: compile to an object file, look it up in the cache, link it into
the process.

    library = load(module.text(), module.exports, module.target)
    address = library.address("run")

Generated kernels are explicit vector code, so by default no IR pass runs (``passes=None``) and only the code
generator's own optimisations apply: half the compile time at the same speed. Objects are linked by ORC;
symbols that a module leaves open resolve to the worker runtime (`runtime.workers`) and then to the process
(libc, libm). All functions may be called from any thread; LLVM work itself is serialised by llvmlite's lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from argosy_cinn.once import LLVM, once_in_llvm
from argosy_cinn.runtime.cache import ObjectCache, cache_key, default_cache
from argosy_cinn.target import Target


class CodegenError(RuntimeError):
    """LLVM refused a module: a fault of the generator. ``text`` holds the module where it is known."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Library:
    """Machine code linked into the process; it lives as long as this object.

    Attributes: ``code`` (the object file's bytes), ``cache_hit`` (whether it came from the cache).
    """

    def __init__(self, addresses: Mapping[str, int], tracker: object, code: bytes, cache_hit: bool) -> None:
        self._addresses = dict(addresses)
        self._tracker = tracker  # unloads the code when collected
        self.code = code
        self.cache_hit = cache_hit

    def address(self, name: str) -> int:
        """The address of an exported function."""
        if name not in self._addresses:
            raise LookupError(f"library exports {', '.join(sorted(self._addresses))}, not {name!r}")
        return self._addresses[name]

    @property
    def exports(self) -> tuple[str, ...]:
        """Names that `address` knows."""
        return tuple(self._addresses)


def load(
    text: str,
    exports: Sequence[str],
    target: Target | None = None,
    *,
    passes: int | None = None,
    cache: ObjectCache | None = None,
    symbols: Mapping[str, int] | None = None,
) -> Library:
    """Compile (or fetch) a module and link it.

    ``passes`` is an IR optimisation level 0-3 or None for none; ``cache`` defaults to the user's cache;
    ``symbols`` gives addresses of further external functions. Raises `CodegenError` when LLVM refuses the
    text.
    """
    target = target or Target.host()
    store = cache if cache is not None else default_cache()
    key = cache_key(text, target.key, options=("passes", passes))
    code = store.get(key)
    hit = code is not None
    if code is None:
        code = compile_object(text, target, passes)
        store.put(key, code)
    return link(code, exports, symbols=symbols, cache_hit=hit)


def compile_object(text: str, target: Target, passes: int | None = None) -> bytes:
    """Position-independent object file (ELF, Mach-O or COFF) of a module."""
    with LLVM:
        machine = target_machine(target)
        return bytes(machine.emit_object(parsed(text, target, machine, passes)))


def compile_assembly(text: str, target: Target, passes: int | None = None) -> str:
    """The module as assembly, to be looked at."""
    with LLVM:
        machine = target_machine(target)
        return str(machine.emit_assembly(parsed(text, target, machine, passes)))


def parsed(text: str, target: Target, machine: Any, passes: int | None) -> Any:
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


def target_machine(target: Target) -> Any:
    """A code generator: cheap to make, and not safe to share between threads."""
    llvm = initialized_llvm()
    if target.family != target.host().family:
        _initialize_foreign()
    factory = llvm.Target.from_triple(target.triple)
    return factory.create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


@once_in_llvm
def initialized_llvm() -> Any:
    """``llvmlite.binding`` with the native target ready."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@once_in_llvm
def _initialize_foreign() -> None:
    """Make LLVM's other code generators ready, which takes a moment."""
    llvm = initialized_llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


class _Linker:
    """LLVM's linker, replaced after `PER_LINKER` libraries. It keeps notes of each library that it ever linked, some
    kilobytes, so that it has to go for them to go; libraries hold the one that they came from."""

    def __init__(self) -> None:
        self.current: Any = None
        self._left = 0
        self._names = itertools.count()

    def next(self) -> tuple[Any, str]:
        """A linker for one more library, and the library's name. To be called by who holds `LLVM`."""
        if not self._left:
            self.current, self._left = _new_linker(), PER_LINKER
        self._left -= 1
        return self.current, f"argosy.{next(self._names)}"


PER_LINKER = 64
"""Libraries that one of LLVM's linkers links. So many that are gone may leave their notes behind for one that lives."""
linker = _Linker()


def _new_linker() -> Any:
    llvm = initialized_llvm()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return llvm.create_lljit_compiler(
        target.create_target_machine(opt=2, reloc="pic", codemodel="small"),
        use_jit_link=True,  # the older linker aborts the process where sections come to lie over 2 GiB apart
    )


def link(
    code: bytes,
    exports: Sequence[str],
    *,
    symbols: Mapping[str, int] | None = None,
    cache_hit: bool = False,
    runtime: bool = True,
) -> Library:
    """Link an object file, or an archive of several, into the process. ``runtime=False`` leaves out the worker
    runtime's symbols."""
    from argosy_cinn.runtime.objects import members

    llvm = initialized_llvm()
    imported = {**(_runtime_symbols(code) if runtime else {}), **(symbols or {})}
    try:
        with LLVM:
            builder = llvm.JITLibraryBuilder().add_current_process()
            for data in members(code):
                builder.add_object_img(data)
            for name in exports:
                builder.export_symbol(name)
            for name, address in imported.items():
                builder.import_symbol(name, address)
            tracker = builder.link(*linker.next())
            addresses = {name: tracker[name] for name in exports}
    except RuntimeError as error:
        raise CodegenError(f"generated code cannot be linked: {error}", "") from error
    return Library(addresses, tracker, code, cache_hit)


def _runtime_symbols(code: bytes) -> Mapping[str, int]:
    found: dict[str, int] = {}
    if any(name in code for name in (b"argosy_parallel", b"argosy_scratch", b"argosy_threads", b"__trunc")):
        from argosy_cinn.runtime.workers import runtime_symbols

        found |= runtime_symbols()
    if b"argosy_poll" in code:
        from argosy_cinn.runtime.interrupts import poll_symbols

        found |= poll_symbols()
    return found

"""Modules to object files, several at once, and one piece of bytes for all of them.

llvmlite lets one thread at a time into LLVM. Code generation for modules of different contexts shares nothing, so that
this one function is called without that lock; the others, which take no time, keep it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argosy_cinn.call_once import LLVM, call_once_in_llvm
from argosy_cinn.runtime.jit import CodegenError, parse_module, target_machine
from argosy_cinn.target import Target
from argosy_tensorcore.wait_notice import count_steps

_MAGIC = b"!<arch>\n"
_HEADER = "{name:<16}{time:<12}{user:<6}{group:<6}{mode:<8}{size:<10}`\n"


def compile_objects(texts: Sequence[str], target: Target, passes: int | None = None, level: int = 2) -> bytes:
    """The object files of modules that refer to each other, each made on a thread of its own: the file itself where
    there is one, else an archive (see `members`). IR passes run at level ``passes``, code is generated at ``level``.
    """
    with LLVM:
        machines = [target_machine(target, level) for _ in texts]
        modules = [parse_module(text, target, machine, passes) for text, machine in zip(texts, machines, strict=True)]
        if len(texts) == 1:
            return bytes(machines[0].emit_object(modules[0]))
        library = _library()  # here, where its lock is held already
        with ThreadPoolExecutor(len(texts)) as threads:
            made = threads.map(lambda *of_one: _emit(library, *of_one), machines, modules, texts)
            return archive(list(count_steps(made, "parts of the code", len(texts))))


def _emit(library: Any, machine: Any, module: Any, text: str) -> bytes:
    """The object file of a module, without llvmlite's lock."""
    message = ctypes.c_char_p()
    buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, 1, ctypes.byref(message))
    if not buffer:
        raise CodegenError(f"LLVM emits no code: {(message.value or b'').decode(errors='replace')}", text)
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@call_once_in_llvm
def _library() -> Any:
    """llvmlite's library with functions of our own, which take no lock."""
    from llvmlite.binding import ffi

    library, pointer = ctypes.CDLL(ffi.lib._name), ctypes.c_void_p
    emit = library.LLVMPY_TargetMachineEmitToMemory
    emit.restype, emit.argtypes = pointer, (pointer, pointer, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))
    for name, result in (
        ("GetBufferStart", pointer),
        ("GetBufferSize", ctypes.c_size_t),
        ("DisposeMemoryBuffer", None),
    ):
        function = getattr(library, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, (pointer,)
    return library


def archive(objects: Sequence[bytes]) -> bytes:
    """Some object files as an archive of the system's format, so that its tools read it."""
    parts = [_MAGIC]
    for i, data in enumerate(objects):
        header = _HEADER.format(name=f"part{i}.o/", time=0, user=0, group=0, mode=644, size=len(data))
        parts += [header.encode(), data, b"\n" * (len(data) % 2)]
    return b"".join(parts)


def members(code: bytes) -> list[bytes]:
    """The object files in what `compile_objects` gave. Raises `CodegenError` for an archive that is cut off."""
    if not code.startswith(_MAGIC):
        return [code]
    found, at = [], len(_MAGIC)
    while at < len(code):
        header, at = code[at : at + 60], at + 60
        size = int(header[48:58]) if header[58:] == b"`\n" and header[48:58].strip().isdigit() else len(code)
        if at + size > len(code):
            raise CodegenError("an archive of object files is damaged", "")
        found.append(code[at : at + size])
        at += size + size % 2
    return found


__all__ = ["archive", "compile_objects", "members"]

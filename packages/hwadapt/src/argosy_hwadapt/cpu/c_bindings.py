"""The C side of the CPU device: addresses, memory views and shared objects.

Only cffi's compiled half is used, through an ``FFI`` object without declarations as cffi's own generated
modules make it: the C parser of the other half would cost 30 ms of import time.
"""

import os
from itertools import count
from typing import Any

from _cffi_backend import FFI, load_library  # type: ignore[import-untyped]

ffi = FFI()
_loaded = count()
_pointer = ffi.typeof("void *")
_char_pointer = ffi.typeof("char *")
_integer = ffi.typeof("uintptr_t")
_pointer_function = ffi.typeof("void(*)(void)")
_memmove = load_library(None).load_function(ffi.typeof("void *(*)(void *, const void *, size_t)"), "memmove")


def address_of(memory: Any) -> int:
    """Return the address of a host buffer's first byte.

    numpy arrays are asked by their own protocol, because dtypes such as bfloat16 are not part of the buffer
    protocol.
    """
    interface = getattr(memory, "__array_interface__", None)
    if interface is not None:
        return int(interface["data"][0])
    return int(ffi.cast(_integer, ffi.from_buffer(memory)))


def copy_bytes(destination: int, source: int, nbytes: int) -> None:
    """Copy between addresses, which may overlap, with the GIL released."""
    _memmove(ffi.cast(_pointer, destination), ffi.cast(_pointer, source), nbytes)


def view(address: int, nbytes: int, keep: object) -> memoryview:
    """Return writable memory at an address as a memoryview that keeps ``keep`` alive as long as it lives."""
    owned = ffi.gc(ffi.cast(_char_pointer, address), lambda _, keep=keep: None)
    return memoryview(ffi.buffer(owned, nbytes))


def open_shared_object(blob: bytes) -> Any:
    """Load a shared object from its bytes. Raises OSError with the loader's message.

    The bytes go through an anonymous file where the system has them, so that nothing of it stays on disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("argosy-kernel", os.MFD_CLOEXEC)
        path = _fresh_path(descriptor)
    else:
        import tempfile  # 2 ms, and only on systems without anonymous files

        descriptor, path = tempfile.mkstemp(suffix=".so")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(blob)
        return load_library(path, 0)
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _fresh_path(descriptor: int) -> str:
    """Return a path of an open file that no other library was loaded by: the loader knows libraries by their paths, and
    descriptors are used again.
    """
    number = next(_loaded)
    bits = "".join("/." if number >> i & 1 else "/" for i in range(32))
    return f"/proc/self/fd{bits}/{descriptor}"


def symbol_address(library: Any, name: str) -> int:
    """Return where a loaded shared object has a function or data. Raises AttributeError when there is none."""
    return int(ffi.cast(_integer, library.load_function(_pointer_function, name)))


def function(address: int, signature: str) -> Any:
    """Return native code as a callable of a C type like ``"void(*)(void*)"``; calls release the GIL."""
    return ffi.cast(signature, address)

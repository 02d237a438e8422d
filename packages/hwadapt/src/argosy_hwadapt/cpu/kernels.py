"""The CPU's kernel forms: a shared object's bytes, or the address of code that a JIT holds in memory.

A kernel is one native function ``void entry(void **arguments, const int64_t extents[6])``. ``arguments[i]``
points at the i-th argument's value (for memory: at its address); ``extents`` are the grid's x, y, z and the
block's x, y, z. One call covers the whole grid; spreading it over threads is the kernel's own business.
"""

from collections.abc import Sequence
from typing import Any

from argosy_hwadapt.cpu.c_bindings import address_of, ffi, function, open_shared_object
from argosy_hwadapt.errors import KernelBuildError, LaunchError, UnsupportedOperation
from argosy_hwadapt.kernel import Argument, Pointer

NATIVE_OBJECT, ADDRESS = "native-object", "address"
FORMS = (NATIVE_OBJECT, ADDRESS)
_SIGNATURE = "void(*)(void **, const int64_t *)"
_TAG_BYTES, _ADDRESS_BYTES = 1, 8


class NativeKernel:
    """A native function with the library that holds it."""

    def __init__(self, entry: str, code: Any, library: Any = None) -> None:
        self.entry, self._code, self._library = entry, code, library

    def __repr__(self) -> str:
        return self.entry

    def run(self, grid: tuple[int, int, int], block: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Call the function once for the whole grid."""
        cells = [_cell(argument) for argument in args]
        pointers = ffi.new("void *[]", [ffi.cast("void *", address_of(cell)) for cell in cells] or 1)
        self._code(pointers, ffi.new("int64_t[6]", [*grid, *block]))


def build_native(form: str, source: bytes) -> bytes:
    """Return a blob: the native code, headed by a byte that tells its form."""
    if form not in FORMS:
        raise UnsupportedOperation(f"cpu: kernel form {form!r} is not one of {', '.join(FORMS)}")
    if form == ADDRESS and len(source) != _ADDRESS_BYTES:
        raise KernelBuildError(f"cpu: an address is 8 bytes, little endian; got {len(source)} bytes")
    return bytes([FORMS.index(form)]) + source


def load_native(blob: bytes, entry: str) -> NativeKernel:
    """Make a kernel of a blob. Raises KernelBuildError when it does not load or has no such entry."""
    form, code = _form_of(blob), blob[_TAG_BYTES:]
    if form == ADDRESS:
        return NativeKernel(entry, function(int.from_bytes(code, "little"), _SIGNATURE))
    try:
        library = open_shared_object(code)
        return NativeKernel(entry, library.load_function(ffi.typeof(_SIGNATURE), entry), library)
    except (OSError, AttributeError) as cause:
        raise KernelBuildError(f"cpu: kernel {entry!r} could not be loaded: {cause}") from cause


def _form_of(blob: bytes) -> str:
    """Return the form a blob was built from. Raises KernelBuildError for bytes that no build returned."""
    form = FORMS[blob[0]] if blob and blob[0] < len(FORMS) else ""
    if not form or (form == ADDRESS and len(blob) != _TAG_BYTES + _ADDRESS_BYTES):
        raise KernelBuildError(f"cpu: {len(blob)} bytes are no blob of forms {', '.join(FORMS)}")
    return form


def _cell(argument: Argument) -> bytes:
    """Return the bytes that an argument pointer points at."""
    if not isinstance(argument, Pointer):
        return argument.to_bytes()
    handle = argument.handle
    if handle is None:
        return bytes(8)
    address = handle if isinstance(handle, int) else address_of(handle)
    if address + argument.offset < 0:
        raise LaunchError(f"cpu: offset {argument.offset} of a kernel argument leaves the address space")
    return (address + argument.offset).to_bytes(8, "little")

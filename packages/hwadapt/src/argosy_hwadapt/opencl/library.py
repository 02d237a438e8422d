"""The OpenCL library: where it is, its functions, and its errors as those of the contract."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import files as files_of
from importlib.resources import files
from os.path import realpath
from typing import Any

import cffi

from argosy_hwadapt.errors import DeviceError, DeviceLost, DeviceNotFound, DeviceOutOfMemory, LaunchError

#: Distributions that carry a vendor's library, and the file that it is.
WHEELS = {"intel-opencl-rt": "libintelocl.so"}
#: What the system calls the loader of installed drivers, and a driver that it may not have been told of.
_LOADER, _DRIVER = "libOpenCL.so.1", b"libnvidia-opencl.so.1"

ffi = cffi.FFI()
ffi.cdef(files(__package__).joinpath("functions.h").read_text())
_MEMORY = {-4: "MEM_OBJECT_ALLOCATION_FAILURE", -5: "OUT_OF_RESOURCES", -6: "OUT_OF_HOST_MEMORY",
           -61: "INVALID_BUFFER_SIZE"}  # fmt: skip
_LAUNCH = {-54: "INVALID_WORK_GROUP_SIZE", -55: "INVALID_WORK_ITEM_SIZE", -52: "INVALID_KERNEL_ARGS"}
_LOST = {-14: "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", -36: "INVALID_COMMAND_QUEUE"}


@cache
def libraries() -> list[Any]:
    """Those that load: vendors' from wheels, and the system's loader. Raises DeviceNotFound where there is none."""
    ffi.dlopen(None).setenv(b"OCL_ICD_FILENAMES", _DRIVER, 0)
    found, tried = [], []
    for path in [*_in_wheels(), _LOADER]:
        try:
            found.append(ffi.dlopen(path))
        except OSError as error:
            tried.append(f"{path}: {error}")
    if not found:
        raise DeviceNotFound(f"no OpenCL library loads ({'; '.join(tried)}); python -m pip install {' '.join(WHEELS)}")
    return found


def _in_wheels() -> list[str]:
    found = []
    for distribution, name in WHEELS.items():
        with suppress(PackageNotFoundError):
            found += [realpath(path.locate()) for path in files_of(distribution) or [] if path.name == name]
    return found


def check(code: int, what: str, kind: type[DeviceError] = DeviceError) -> None:
    """Raise the error that a status stands for; of the given kind where it stands for none."""
    if code == 0:
        return
    for names, known in ((_MEMORY, DeviceOutOfMemory), (_LAUNCH, LaunchError), (_LOST, DeviceLost)):
        if code in names:
            raise known(f"opencl: {what} failed: {names[code]} ({code})")
    raise kind(f"opencl: {what} failed with status {code}")


def create_object(what: str, create: Any, *arguments: Any, kind: type[DeviceError] = DeviceError) -> Any:
    """What a function gives whose last parameter receives the status."""
    status = ffi.new("status *")
    result = create(*arguments, status)
    check(status[0], what, kind)
    return result


def query(ask: Any, *key: Any) -> bytes:
    """The bytes of a piece of information, which is asked for twice: how long it is, and what."""
    size = ffi.new("size_t *")
    check(ask(*key, 0, ffi.NULL, size), "a query")
    memory = ffi.new("char[]", size[0])
    check(ask(*key, size[0], memory, ffi.NULL), "a query")
    return bytes(ffi.buffer(memory, size[0]))


def list_handles(ask: Any, *key: Any) -> list[Any]:
    """The objects that a function lists, which is asked twice, too; none where it fails."""
    count = ffi.new("uint32_t *")
    found = ffi.new("handle[]", 0 if ask(*key, 0, ffi.NULL, count) else count[0])
    ask(*key, len(found), found, ffi.NULL)
    return list(found)

"""Permission for the tile registers of x86 (AMX): Linux gives their 8 KiB of state only to processes that ask."""

import sys
from functools import lru_cache

from argosy_hwadapt.cpu.features import cpu_arch, cpu_features

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@lru_cache(maxsize=1)
def request_tiles() -> bool:
    """Ask the system for AMX's tile registers, once for all threads of the process, and return whether it may use them.

    False where the processor has none, on systems other than Linux, and where Linux refuses: kernels before 5.16, and
    processes in which a thread's alternate signal stack has no room for the larger state. Children keep the permission
    over a fork and ask anew after an exec.
    """
    if "amx_tile" not in cpu_features() or cpu_arch() != "x86_64" or not sys.platform.startswith("linux"):
        return False
    import ctypes  # a system call by its number is what cffi's compiled half cannot make

    system_call = ctypes.CDLL(None).syscall
    return int(system_call(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)) == 0

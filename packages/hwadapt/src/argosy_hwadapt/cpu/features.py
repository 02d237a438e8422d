"""What the processor can do, how many cores this process may use and how much memory it may have."""

import os
from functools import lru_cache


@lru_cache(maxsize=1)
def cpu_features() -> frozenset[str]:
    """Return the processor's instruction sets by Linux's names (``avx2``, ``avx512_bf16``, ``asimd``).

    Without /proc/cpuinfo (macOS) the names come from sysctl; where neither is there the set is empty, which
    code generators take as the architecture's baseline.
    """
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return _sysctl_features()


@lru_cache(maxsize=1)
def cpu_name() -> str:
    """Return the processor's name as its maker prints it, or the architecture."""
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return cpu_arch()


def cpu_arch() -> str:
    """Return the architecture that code is generated for, as in ``x86_64``, ``aarch64``."""
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine().lower() or "unknown"


def usable_cpus() -> frozenset[int]:
    """Return the logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def physical_cores() -> int:
    """Return how many physical cores this process may use, by affinity and the container's quota; at
    least 1.
    """
    cores = {_siblings(cpu) for cpu in usable_cpus()}
    quota = _cpu_quota()
    return max(1, len(cores) if quota is None else min(len(cores), quota))


def memory_bytes() -> int:
    """Return the bytes of memory of the machine, or of its container where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 62
    limit = _read("/sys/fs/cgroup/memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def available_memory() -> int:
    """Return the bytes that can be had now without pushing others out, by the system's and the container's account
    and the process's own limit of addresses.
    """
    known = [memory_bytes()]
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            known.append(int(line.split()[1]) * 1024)
    limit, used = _read("/sys/fs/cgroup/memory.max"), _read("/sys/fs/cgroup/memory.current")
    if limit.isdigit() and used.isdigit():
        known.append(max(0, int(limit) - int(used)))
    known += _addresses_left()
    return min(known)


def _addresses_left() -> list[int]:
    """The bytes that ``ulimit -v`` leaves, where it is set."""
    pages = _read("/proc/self/statm").split()
    if not pages:
        return []
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit  # absent where /proc is, too

    limit = getrlimit(RLIMIT_AS)[0]
    return [] if limit == RLIM_INFINITY else [max(0, limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"))]


def _siblings(cpu: int) -> str:
    """Name the physical core of a logical processor by the list of logical ones on it."""
    return _read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)


def _cpu_quota() -> int | None:
    """Return the container's limit in whole processors, rounded up (cgroup v2 ``cpu.max``: quota and
    period).
    """
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if not (quota.isdigit() and period.isdigit()):
        return None
    return max(1, -(-int(quota) // int(period)))


def _cpuinfo() -> list[str]:
    return _read("/proc/cpuinfo").splitlines()


def _sysctl_features() -> frozenset[str]:
    command = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
    import subprocess  # 3 ms, and only on systems without /proc

    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(output.lower().split())


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""

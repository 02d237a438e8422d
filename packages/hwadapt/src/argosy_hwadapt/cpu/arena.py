"""Host memory in huge pages: large blocks get a mapping each, small ones share slabs."""

import mmap
from threading import RLock

from argosy_hwadapt.cpu.c_bindings import address_of
from argosy_hwadapt.errors import DeviceOutOfMemory
from argosy_hwadapt.fork import renew_in_child

HUGE_PAGE = 2 << 20
#: Blocks from this size on get a mapping of their own, given back to the system when freed.
LARGE = 1 << 20
SLAB = 4 << 20
#: Large blocks start this much later than the one before, modulo a page. Streams with equal addresses
#: modulo 4 KiB compete for the same cache sets and cost up to a fifth of a memory-bound kernel; about 800
#: bytes apart is best.
STAGGER = 768
_PAGE = 4096


class Arena:
    """Hands out 256-byte aligned addresses of private anonymous memory."""

    def __init__(self, limit: int) -> None:
        #: A request beyond this many bytes is refused, although an overcommitting system would promise it.
        self.limit = limit
        self._lock = renew_in_child(RLock())
        self._mappings: dict[int, mmap.mmap] = {}
        self._sizes: dict[int, int] = {}
        self._freed: dict[int, list[int]] = {}
        self._slabs: list[mmap.mmap] = []
        self._slab_next = self._slab_end = 0
        self._colour = 0

    def allocate(self, nbytes: int) -> int:
        """Return the address of ``nbytes`` bytes. Raises DeviceOutOfMemory."""
        with self._lock:
            return self._allocate_large(nbytes) if nbytes >= LARGE else self._allocate_small(nbytes)

    def free(self, address: int) -> None:
        """Give a block back: a large one to the system, a small one to its slab."""
        with self._lock:
            if self._mappings.pop(address, None) is None:
                self._freed.setdefault(self._sizes[address], []).append(address)

    def _allocate_large(self, nbytes: int) -> int:
        mapping = _map(nbytes + HUGE_PAGE + _PAGE, self.limit)
        self._colour = (self._colour + STAGGER) % _PAGE
        address = _round_up(address_of(mapping), HUGE_PAGE) + self._colour
        self._mappings[address] = mapping
        return address

    def _allocate_small(self, nbytes: int) -> int:
        nbytes = _round_up(nbytes, 256)
        freed = self._freed.get(nbytes)
        if freed:
            return freed.pop()
        if self._slab_next + nbytes > self._slab_end:
            self._add_slab()
        address, self._slab_next = self._slab_next, self._slab_next + nbytes
        self._sizes[address] = nbytes
        return address

    def _add_slab(self) -> None:
        slab = _map(SLAB + HUGE_PAGE, self.limit)
        self._slabs.append(slab)
        self._slab_next = _round_up(address_of(slab), HUGE_PAGE)
        self._slab_end = self._slab_next + SLAB


def _round_up(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def _map(nbytes: int, limit: int) -> mmap.mmap:
    if nbytes > limit:
        raise DeviceOutOfMemory(f"cpu: {nbytes} bytes were requested, the machine has {limit}", nbytes, None, limit)
    try:
        mapping = _private_mapping(nbytes)
    except (OSError, ValueError, OverflowError) as cause:
        raise DeviceOutOfMemory(f"cpu: the system refused {nbytes} bytes: {cause}", nbytes) from cause
    if hasattr(mmap, "MADV_HUGEPAGE"):
        _advise_huge(mapping)
    return mapping


def _private_mapping(nbytes: int) -> mmap.mmap:
    """Map anonymous memory. Python's default is a *shared* mapping, for which huge-page advice does
    nothing.
    """
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


def _advise_huge(mapping: mmap.mmap) -> None:
    try:
        mapping.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel built without transparent huge pages: ordinary pages serve as well
        return

"""Level 1: memory, copies and their order."""

import gc
import random

from argosy_hwadapt.memory import Buffer
from argosy_hwadapt.testing.suite import CheckSkipped, Subject, check, require, require_error


def _pattern(nbytes: int, seed: int = 0) -> bytes:
    return random.Random(nbytes * 31 + seed).randbytes(nbytes)


def _upload(subject: Subject, data: bytes) -> Buffer:
    buffer = subject.device.allocate(len(data))
    subject.device.copy(buffer, data)
    return buffer


def _download(subject: Subject, buffer: Buffer) -> bytes:
    out = bytearray(buffer.nbytes)
    subject.device.copy(out, buffer)
    subject.device.synchronize()
    return bytes(out)


def _round_trip(subject: Subject, nbytes: int) -> None:
    data = _pattern(nbytes)
    require(_download(subject, _upload(subject, data)) == data, f"{nbytes} bytes came back changed")


@check(1)
def moves_small_sizes(subject: Subject) -> None:
    """Sizes around the granularity of memory survive a round trip."""
    for nbytes in (1, 2, 3, 7, 64, 255, 256, 257, 4095, 4096, 4097):
        _round_trip(subject, nbytes)


@check(1)
def moves_megabytes(subject: Subject) -> None:
    """Sizes that need several transfers survive a round trip."""
    for nbytes in (1 << 20, (3 << 20) + 5):
        _round_trip(subject, nbytes)


@check(1)
def addresses_beyond_four_gibibytes(subject: Subject) -> None:
    """Offsets need more than 32 bits: the last byte of 4 GiB + 1 is its own."""
    size = (4 << 30) + 1
    if subject.device.mem_info()[0] < 2 * size:
        raise CheckSkipped("less than 8 GiB of device memory are free")
    buffer, out = subject.device.allocate(size), bytearray(2)
    subject.device.copy(buffer, b"first", 5)
    subject.device.copy(buffer, b"Z", 1, dst_offset=size - 1)
    subject.device.copy(out, buffer, 1, 0, size - 1)
    subject.device.copy(out, buffer, 1, 1, 0)
    subject.device.synchronize()
    del buffer
    subject.device.allocator.release_cached()
    require(bytes(out) == b"Zf", f"read {bytes(out)!r} instead of b'Zf'")


@check(1)
def gives_nothing_for_zero_bytes(subject: Subject) -> None:
    """Zero bytes need no handle, and copying them does nothing."""
    empty = subject.device.allocate(0)
    require(empty.handle is None, "an empty buffer has a handle")
    subject.device.copy(empty, b"")


@check(1)
def honours_offsets(subject: Subject) -> None:
    """A copy changes exactly its range, on every combination of sides."""
    buffer, other = _upload(subject, bytes(64)), _upload(subject, _pattern(64))
    subject.device.copy(buffer, b"abcdef", 3, dst_offset=13, src_offset=2)
    subject.device.copy(buffer, other, 5, dst_offset=40, src_offset=9)
    expected = bytearray(64)
    expected[13:16], expected[40:45] = b"cde", _pattern(64)[9:14]
    require(_download(subject, buffer) == expected, "bytes outside the range changed, or inside did not")


@check(1)
def copies_overlapping_ranges(subject: Subject) -> None:
    """Source and destination may overlap in both directions, as in memmove."""
    for source, target in ((0, 100), (100, 0), (0, 1), (1, 0)):
        data = bytearray(_pattern(1000))
        buffer = _upload(subject, bytes(data))
        subject.device.copy(buffer, buffer, 800, dst_offset=target, src_offset=source)
        data[target : target + 800] = data[source : source + 800]
        require(_download(subject, buffer) == data, f"moving 800 bytes from {source} to {target} went wrong")


@check(1)
def keeps_copies_in_order(subject: Subject) -> None:
    """Of many queued copies to one place the last one wins; chains arrive complete."""
    first, second = subject.device.allocate(4096), subject.device.allocate(4096)
    for turn in range(64):
        subject.device.copy(first, bytes([turn]) * 4096)
        subject.device.copy(second, first)
    require(_download(subject, second) == bytes([63]) * 4096, "copies overtook each other")


@check(1)
def keeps_host_sources_alive(subject: Subject) -> None:
    """A host buffer whose last other reference goes away right after the copy still arrives."""
    buffers = [subject.device.allocate(1 << 16) for _ in range(32)]
    for turn, buffer in enumerate(buffers):
        subject.device.copy(buffer, bytearray([turn]) * (1 << 16))
    gc.collect()
    for turn, buffer in enumerate(buffers):
        require(_download(subject, buffer) == bytes([turn]) * (1 << 16), f"source {turn} was lost")


@check(1)
def separates_live_buffers(subject: Subject) -> None:
    """Many live buffers of mixed sizes share no byte."""
    sizes = [random.Random(5).randint(1, 5000) for _ in range(100)]
    buffers = [_upload(subject, _pattern(size, seed)) for seed, size in enumerate(sizes)]
    for seed, (size, buffer) in enumerate(zip(sizes, buffers, strict=True)):
        require(_download(subject, buffer) == _pattern(size, seed), f"buffer {seed} was overwritten")


@check(1)
def leaks_nothing(subject: Subject) -> None:
    """A thousand allocations and frees through the runtime itself leave memory as it was."""
    device = subject.device
    device.allocator.release_cached()
    before = device.memory_stats()
    for turn in range(1000):
        device.call("free", device.call("alloc", 1 << 10 + turn % 8))
    device.synchronize()
    require(device.memory_stats() == before, "the framework's own account changed")
    buffer = device.allocate(min(device.mem_info()[0] // 2, 64 << 20))
    require(buffer.handle is not None, "half of the free memory could not be had afterwards")


@check(1)
def fills_memory(subject: Subject) -> None:
    """memset, offered or default, sets exactly its range."""
    buffer = _upload(subject, _pattern(3000))
    subject.device.memset(buffer, 0xAB, offset=1000, nbytes=999)
    expected = bytearray(_pattern(3000))
    expected[1000:1999] = b"\xab" * 999
    require(_download(subject, buffer) == expected, "memset set other bytes")


@check(1)
def refuses_ranges_outside(subject: Subject) -> None:
    """A range beyond a buffer never reaches the device."""
    buffer = _upload(subject, bytes(16))
    for offset, nbytes in ((8, 9), (17, 0), (-1, 1)):
        require_error(
            ValueError,
            lambda o=offset, n=nbytes: subject.device.copy(buffer, bytes(32), n, dst_offset=o),  # type: ignore[misc]
            f"{nbytes} bytes at {offset} of 16",
        )


@check(1)
def tells_its_memory(subject: Subject) -> None:
    """Free memory is not more than the total."""
    free, total = subject.device.mem_info()
    require(0 <= free <= total, f"free {free} of total {total}")


@check(1)
def shows_host_memory_truly(subject: Subject) -> None:
    """Where the host can see memory, the view is the memory."""
    buffer = _upload(subject, b"before")
    subject.device.synchronize()
    view = subject.device.host_view(buffer)
    if view is None:
        raise CheckSkipped("memory of this device is not visible to the host")
    require(bytes(view) == b"before", f"the view shows {bytes(view)!r}")
    view[:] = b"after!"
    require(_download(subject, buffer) == b"after!", "writing to the view did not change the memory")

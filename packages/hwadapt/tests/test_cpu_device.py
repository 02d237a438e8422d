"""The CPU device: memory, views, adoption and copies."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argosy_hwadapt as hw
from argosy_hwadapt.cpu.arena import Arena
from argosy_hwadapt.memory import CachingAllocator, size_class


@pytest.fixture
def cpu():
    return hw.device("cpu")


def filled(device, values):
    buffer = device.allocate(values.nbytes)
    device.copy(buffer, values)
    return buffer


def test_device_is_opened_once(cpu):
    """The same name and index give the same device."""
    assert hw.device() is cpu
    assert repr(cpu) == "cpu:0"


def test_unknown_device_and_index_are_errors_that_say_what_exists():
    """Asking for what is not there names what is."""
    with pytest.raises(hw.DeviceNotFound, match=r"no device plug-in is named 'npu9'; installed: .*cpu"):
        hw.device("npu9")
    with pytest.raises(LookupError, match=r"cpu:7 does not exist; 'cpu' has 1"):
        hw.device("cpu", 7)


@given(st.integers(1, 1 << 40))
@settings(deadline=None)
def test_size_class_wastes_at_most_an_eighth(nbytes):
    """A block holds its request, is aligned and wastes at most an eighth (or less than one granule)."""
    block = size_class(nbytes)
    assert block >= nbytes
    assert block % 256 == 0
    assert block - nbytes < max(256, nbytes / 8 + 1)
    assert size_class(block) == block


@pytest.mark.parametrize("nbytes", [1, 255, 256, 4097, 1 << 20, (5 << 20) + 3])
def test_memory_is_aligned_and_separate(cpu, nbytes):
    """Two live buffers are 256-byte aligned and share no byte."""
    a, b = cpu.allocate(nbytes), cpu.allocate(nbytes)
    cpu.memset(a, 1)
    cpu.memset(b, 2)
    assert cpu.address(a) % 256 == 0
    assert set(bytes(cpu.host_view(a))) == {1}
    assert set(bytes(cpu.host_view(b))) == {2}


def test_large_blocks_are_staggered():
    """Large blocks do not share their address modulo a page, so that streams do not compete for cache
    sets; a device may hand out one that was freed before.
    """
    arena = Arena(1 << 30)
    assert len({arena.allocate((3 << 20) + i) % 4096 for i in range(4)}) == 4


def test_a_freed_block_is_reused(cpu):
    """After the first step the same memory serves again."""
    buffer = cpu.allocate(70_000)
    address = cpu.address(buffer)
    reserved = cpu.memory_stats().reserved
    del buffer
    again = cpu.allocate(69_999)
    assert cpu.address(again) == address
    assert cpu.memory_stats().reserved == reserved


def test_a_view_keeps_its_memory_alive(cpu):
    """An array made from a view stays valid when the buffer is forgotten, and its block is not handed
    out again.
    """
    buffer = filled(cpu, np.arange(100.0))
    address = cpu.address(buffer)
    array = np.frombuffer(cpu.host_view(buffer, 80, 160))
    del buffer
    assert cpu.address(cpu.allocate(800)) != address
    np.testing.assert_array_equal(array, np.arange(10.0, 30.0))


def test_views_write_through(cpu):
    """A view of device memory is the memory, not a copy."""
    buffer = filled(cpu, np.zeros(4))
    np.frombuffer(cpu.host_view(buffer))[2] = 7
    assert np.frombuffer(cpu.host_view(buffer)).tolist() == [0, 0, 7, 0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128", "uint64"])
def test_adopt_shares_an_array(cpu, dtype):
    """An adopted array and its buffer are one memory, and the buffer keeps the array alive."""
    array = np.ones((2, 3), dtype)
    expected = array.ctypes.data
    buffer = cpu.adopt(array)
    del array
    gc.collect()
    assert cpu.address(buffer) == expected
    assert buffer.nbytes == np.dtype(dtype).itemsize * 6
    assert np.frombuffer(cpu.host_view(buffer), dtype).tolist() == [1] * 6


def test_adopt_takes_scalars_arrays_without_elements_and_read_only_ones(cpu):
    """0-D, 0-size and read-only arrays are adopted like others; the read-only one has a read-only view."""
    assert len(cpu.host_view(cpu.adopt(np.array(1.5)))) == 8
    assert len(cpu.host_view(cpu.adopt(np.empty((0, 3))))) == 0
    assert cpu.host_view(cpu.adopt(np.frombuffer(b"12345678"))).readonly


def test_empty_buffer_has_no_handle(cpu):
    """Nothing is asked of the runtime for zero bytes."""
    empty = cpu.allocate(0)
    assert (empty.handle, empty.nbytes, cpu.address(empty)) == (None, 0, 0)
    assert len(cpu.host_view(empty)) == 0
    cpu.copy(empty, b"")


@given(st.data())
@settings(deadline=None)
def test_copies_move_exactly_the_range(data):
    """Offsets and sizes are honoured to the byte, also when source and destination overlap."""
    cpu = hw.device()
    values = np.arange(64, dtype=np.uint8)
    buffer = filled(cpu, values)
    nbytes = data.draw(st.integers(0, 64))
    src, dst = data.draw(st.integers(0, 64 - nbytes)), data.draw(st.integers(0, 64 - nbytes))
    cpu.copy(buffer, buffer, nbytes, dst_offset=dst, src_offset=src)
    expected = values.copy()
    expected[dst : dst + nbytes] = values[src : src + nbytes]
    assert bytes(cpu.host_view(buffer)) == expected.tobytes()


def test_copies_outside_a_buffer_are_refused(cpu):
    """A range that leaves its side is a ValueError with the numbers, and nothing is written."""
    buffer = filled(cpu, np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="bytes 4 to 12 are outside a buffer of 8 bytes"):
        cpu.copy(buffer, bytes(8), dst_offset=4)
    with pytest.raises(ValueError, match="outside"):
        cpu.host_view(buffer, -1)
    assert bytes(cpu.host_view(buffer)) == bytes(8)


def test_out_of_memory_says_how_much_and_who(cpu):
    """A request beyond the machine is refused with the sizes and the largest holders; the device stays
    usable.
    """
    keep = cpu.allocate(3 << 20)
    with pytest.raises(MemoryError, match=r"is out of memory: 1024 TiB .* holders: .*3 MiB") as info:
        cpu.allocate(1 << 50)
    assert info.value.requested == 1 << 50
    assert info.value.total == cpu.info.memory_bytes
    assert cpu.allocate(1 << 20).nbytes == 1 << 20
    del keep


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="addresses are counted in /proc")
def test_free_memory_is_no_more_than_the_addresses_that_are_left():
    """Under ``ulimit -v`` what is told to be free is what can be asked for, not what the machine has."""
    code = (
        "import resource, argosy_hwadapt as hw\n"
        "limit = 1 << 33\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "free, total = hw.device('cpu').mem_info()\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "assert free <= limit - used + (1 << 20) and free <= total, (free, total, used)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_out_of_memory_first_releases_what_is_cached(cpu):
    """At the limit, cached blocks and cyclic garbage are released before a request fails."""
    allocator = CachingAllocator(cpu, limit=8 << 20)
    holder = [allocator.allocate(4 << 20)]
    holder.append(holder)
    del holder
    cached = allocator.allocate(2 << 20)
    del cached
    gc.disable()
    try:
        assert allocator.allocate(8 << 20).nbytes == 8 << 20
    finally:
        gc.enable()
    with pytest.raises(hw.DeviceOutOfMemory):
        allocator.allocate((8 << 20) + 1)


def test_statistics_count_live_reserved_and_peak(cpu):
    """Allocated counts live blocks, reserved what is held, peak the most ever live."""
    allocator = CachingAllocator(cpu)
    a = allocator.allocate(1000)
    b = allocator.allocate(3000)
    assert allocator.stats() == (1024 + 3072,) * 4
    del b
    assert allocator.stats() == (1024, 4096, 4096, 4096)
    assert allocator.release_cached() == 3072
    del a


def test_huge_pages_back_large_blocks(cpu):
    """Where the system offers transparent huge pages, a large block gets them."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("the system has no transparent huge pages, or they are switched off")

    def huge_kilobytes():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages"))

    before = huge_kilobytes()
    buffer = cpu.allocate(32 << 20)
    cpu.memset(buffer, 1)
    assert huge_kilobytes() - before >= 16 << 10


def test_threads_share_the_allocator(cpu):
    """Buffers made and dropped by several threads at once never share a byte, and the account ends where it began."""
    allocator = CachingAllocator(cpu)

    def work(seed):
        rng, held = np.random.default_rng(seed), []
        for _ in range(300):
            buffer = allocator.allocate(int(rng.integers(1, 4000)))
            cpu.memset(buffer, seed)
            held.append(buffer)
            if len(held) > 8:
                assert set(bytes(cpu.host_view(held.pop(int(rng.integers(8)))))) == {seed}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))
    gc.collect()
    assert allocator.stats().allocated == 0

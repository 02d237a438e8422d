"""Kernels on the CPU: forms, arguments, limits and the blob cache."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import argosy_hwadapt as hw
from argosy_hwadapt.blob_cache import BlobCache
from argosy_hwadapt.cpu.c_bindings import ffi

SOURCE = r"""
#include <stdint.h>
void axpy(void **arguments, const int64_t *extents) {
    const float *x = *(const float **)arguments[0];
    float *y = *(float **)arguments[1];
    float a = *(float *)arguments[2];
    int64_t n = *(int64_t *)arguments[3];
    for (int64_t i = 0; i < n && i < extents[0] * extents[3]; i++) y[i] += a * x[i];
}
"""


@pytest.fixture
def cpu():
    return hw.device("cpu")


@pytest.fixture(scope="module")
def shared_object(tmp_path_factory):
    """The bytes of a compiled kernel; compilers are for tests only."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("object")
    (folder / "k.c").write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", folder / "k.so", folder / "k.c"], check=True)
    return (folder / "k.so").read_bytes()


def test_a_shared_object_runs(cpu, shared_object):
    """A kernel of form native-object computes on buffers at offsets with typed scalars."""
    kernel = cpu.load(cpu.build("native-object", shared_object), "axpy")
    x, y = np.arange(10, dtype="f4"), np.ones(10, "f4")
    arguments = [(cpu.adopt(x), 8), cpu.adopt(y), hw.Scalar("f", 0.5), hw.Scalar("q", 6)]
    cpu.launch(kernel, (4,), (2,), arguments)
    cpu.synchronize()
    np.testing.assert_array_equal(y, [2, 2.5, 3, 3.5, 4, 4.5, 1, 1, 1, 1])


def test_an_address_runs(cpu):
    """A kernel of form address is code that somebody holds in memory; it sees grid and block."""
    seen = []
    callback = ffi.callback("void(void **, int64_t *)", lambda a, e: seen.append([e[i] for i in range(6)]))
    address = int(ffi.cast("uintptr_t", callback)).to_bytes(8, "little")
    cpu.launch(cpu.load(cpu.build("address", address), "callback"), (5, 4), (3,))
    assert seen == [[5, 4, 1, 3, 1, 1]]


@pytest.mark.parametrize(
    ("code", "value", "ctype"),
    [
        ("b", -3, "int8_t *"),
        ("H", 65535, "uint16_t *"),
        ("q", 2**62, "int64_t *"),
        ("d", 0.1, "double *"),
    ],
)
def test_scalars_arrive_by_exact_type(cpu, code, value, ctype):
    """Each scalar is packed in its own size."""
    seen = []
    callback = ffi.callback("void(void **, int64_t *)", lambda a, _: seen.append(ffi.cast(ctype, a[0])[0]))
    address = int(ffi.cast("uintptr_t", callback)).to_bytes(8, "little")
    cpu.launch(cpu.load(cpu.build("address", address), "callback"), (1,), args=[hw.Scalar(code, value)])
    assert seen == [value]


def test_what_does_not_load_says_why(cpu, shared_object):
    """A missing entry and bytes that are no shared object are build errors; an unknown form names the
    known ones.
    """
    with pytest.raises(hw.KernelBuildError, match="'gemm' could not be loaded"):
        cpu.load(cpu.build("native-object", shared_object), "gemm")
    with pytest.raises(hw.KernelBuildError, match="could not be loaded"):
        cpu.load(cpu.build("native-object", b"not an object"), "axpy")
    with pytest.raises(hw.UnsupportedOperation, match="'ptx'; it takes: native-object, address"):
        cpu.build("ptx", b"")
    for blob in (b"", b"\x07blob", b"\x01" + bytes(9)):
        with pytest.raises(hw.KernelBuildError, match="no blob of forms"):
            cpu.load(blob, "axpy")
    with pytest.raises(hw.KernelBuildError, match="8 bytes"):
        cpu.build("address", b"123")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": (0,)}, "grid needs one to three extents"),
        ({"grid": (1, 1, 1, 1)}, "grid needs one to three extents"),
        ({"grid": (1,), "block": (1 << 31,)}, "work-items; at most"),
        ({"grid": (1,), "shared": 1}, "1 bytes of shared memory asked"),
        ({"grid": (1,), "args": [3.5]}, "not 3.5"),
    ],
)
def test_launch_limits_are_checked_before_the_device(cpu, arguments, message):
    """What does not fit never reaches the kernel (this one would crash)."""
    kernel = cpu.load(cpu.build("address", bytes(8)), "null")
    with pytest.raises(hw.LaunchError, match=message):
        cpu.launch(kernel, **arguments)


def test_blobs_are_found_again(tmp_path, cpu):
    """A second build takes the stored blob; other sources or options do not."""
    cache = BlobCache(tmp_path / "blobs")
    blob = cpu.build("native-object", b"code", {"level": "2"}, cache)
    (stored,) = (tmp_path / "blobs").iterdir()
    cache.put(stored.name, b"stored instead")
    assert cpu.build("native-object", b"code", {"level": "2"}, cache) == b"stored instead"
    assert cpu.build("native-object", b"code", {"level": "3"}, cache) == blob
    assert cpu.build("address", bytes(8), cache=cache) == b"\x01" + bytes(8)
    assert len(list((tmp_path / "blobs").iterdir())) == 2


def test_damaged_blobs_are_ignored(tmp_path):
    """A truncated or altered file counts as absent."""
    cache = BlobCache(tmp_path)
    cache.put("k", b"machine code")
    path = tmp_path / "k"
    assert cache.get("k") == b"machine code"
    for content in (path.read_bytes()[:-1], path.read_bytes()[:-1] + b"?", b""):
        path.write_bytes(content)
        assert cache.get("k") is None


def size_of(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def test_the_least_recently_used_blobs_go_first(tmp_path):
    """The folder stays within its limit; a blob that is read stays longer."""
    cache = BlobCache(tmp_path, limit_bytes=5000)
    for number in range(4):
        cache.put(f"k{number}", bytes(1000))
    assert cache.get("k0") == bytes(1000)
    cache.put("k4", bytes(1000))
    assert [cache.get(f"k{n}") is not None for n in range(5)] == [True, False, True, True, True]
    cache.put("large", bytes(5000))
    assert cache.get("large") is None
    assert cache.get("k0") is not None
    for number in range(100):
        cache.put(f"more{number}", bytes(300))
        assert size_of(tmp_path) <= 5000
        assert cache.get(f"more{number}") is not None


def test_abandoned_files_go(tmp_path):
    """What a killed writer left is deleted after an hour, what another is writing now is not."""
    cache = BlobCache(tmp_path)
    for name in (".writing-old", ".writing-new"):
        (tmp_path / name).write_bytes(b"half")
    os.utime(tmp_path / ".writing-old", (0, 0))
    cache.put("k", b"code")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".writing-new", "k"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_no_blob(tmp_path):
    """It counts as absent; nobody waits for its other end."""
    os.mkfifo(tmp_path / "k", 0o600)
    cache = BlobCache(tmp_path)
    assert cache.get("k") is None
    cache.put("k", b"code")
    assert cache.get("k") == b"code"


SHARING = """
import sys
from argosy_hwadapt.blob_cache import BlobCache

cache, seed = BlobCache(sys.argv[1], limit_bytes=20_000), int(sys.argv[2])
for turn in range(300):
    number = (turn * 7 + seed) % 40
    blob = bytes([number]) * (500 + number)
    found = cache.get_or_make(BlobCache.key([str(number)]), lambda: blob)
    assert found == blob, (turn, number)
"""


def test_processes_share_a_folder(tmp_path):
    """Several that read, write and evict at once get whole blobs, and the folder stays within its limit."""
    command = [sys.executable, "-c", SHARING, str(tmp_path)]
    running = [subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE) for seed in range(3)]
    for process in running:
        assert process.communicate()[1] == b""
        assert process.returncode == 0
    assert size_of(tmp_path) <= 20_000
    assert not list(tmp_path.glob(".writing-*"))


def test_keys_separate_parts():
    """Moving a byte from one part to the next gives another key."""
    assert BlobCache.key(["ab", "c"]) != BlobCache.key(["a", "bc"])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_only_the_owner_may_write(tmp_path):
    """The folder is private when made, one that others may write to is refused, and so is such a file."""
    cache = BlobCache(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    cache.put("k", b"code")
    assert (tmp_path / "new" / "k").stat().st_mode & 0o077 == 0
    (tmp_path / "new" / "k").chmod(0o666)
    assert cache.get("k") is None
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(hw.DeviceError, match="not private"):
        BlobCache(tmp_path / "open")

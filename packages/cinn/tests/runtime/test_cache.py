"""The object cache: whole entries or none, owner only, bounded."""

import os
import stat
import subprocess
import sys

import pytest

from argosy_cinn.runtime.cache import ObjectCache, cache_key, default_cache

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "objects")


def only_entry(cache):
    (path,) = cache.folder.glob("*.obj")
    return path


def test_what_was_put_is_got(cache):
    """An entry comes back byte for byte; an unknown key gives None."""
    cache.put("a", b"code")
    assert cache.get("a") == b"code"
    assert cache.get("b") is None


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:-1] + b"!", lambda d: b"", lambda d: b"x" + d, lambda d: d[:20]]
)
def test_a_damaged_entry_is_removed(cache, damage):
    """Truncated or changed entries are misses and disappear, so that they are built again."""
    cache.put("a", b"some machine code")
    path = only_entry(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get("a") is None
    cache.put("a", b"some machine code")
    assert cache.get("a") == b"some machine code"


def test_an_entry_under_another_name_is_damaged(cache):
    """As after a copy of some files of another folder: whole, and code of something else."""
    cache.put("a", b"code of a")
    only_entry(cache).rename(cache.folder / "b.obj")
    assert cache.get("b") is None
    assert cache.names() == []


@posix
def test_temporary_files_of_killed_processes_are_deleted(cache):
    """The next process that writes does it; one that is being written stays, however old it is."""
    import fcntl

    cache.put("a", b"code")
    abandoned, busy = (cache.folder / f".{name}.obj.0123456789abcdef.argosy-tmp" for name in "xy")
    abandoned.write_bytes(b"ha")
    with open(busy, "wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        os.utime(busy, (1, 1))
        code = f"from argosy_cinn.runtime import ObjectCache; ObjectCache({str(cache.folder)!r}).put('b', b'')"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert (abandoned.exists(), busy.exists(), cache.get("a")) == (False, True, b"code")


@posix
def test_an_entry_that_is_no_file_is_none(cache):
    """A pipe of that name would wait for a writer for ever."""
    cache.put("a", b"code")
    path = only_entry(cache)
    path.unlink()
    os.mkfifo(path)
    assert cache.get("a") is None
    cache.put("a", b"code")
    assert cache.get("a") == b"code"


@posix
def test_only_the_owner_may_read_or_write(cache):
    """Folder and entries are closed to others."""
    cache.put("a", b"code")
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_entry(cache).stat().st_mode) == 0o600


@posix
def test_a_folder_that_others_can_write_is_refused(tmp_path):
    """Machine code is never loaded from a folder that somebody else could have filled."""
    folder = tmp_path / "shared"
    ObjectCache(folder).put("a", b"code")
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="not used"):
        assert ObjectCache(folder).get("a") is None


def test_the_least_recently_used_entries_go_first(tmp_path):
    """The folder stays within its limit, and what was used last stays."""
    cache = ObjectCache(tmp_path / "objects", limit_bytes=10_000)
    for i in range(12):
        cache.put(f"{i:02}", bytes(1000))
        os.utime(cache.folder / f"{i:02}.obj", (i, i))
    assert cache.get("05") is not None
    cache.put("last", bytes(1000))
    cache.trim()
    sizes = [p.stat().st_size for p in cache.folder.glob("*.obj")]
    assert sum(sizes) <= 10_000
    assert cache.get("last") is not None
    assert cache.get("05") is not None
    assert cache.get("00") is None


def test_keys_tell_machines_texts_and_options_apart():
    """Whatever changes the machine code changes the key."""
    base = cache_key("text", ("triple", "cpu", "+a"), ("passes", None))
    assert base == cache_key("text", ("triple", "cpu", "+a"), ("passes", None))
    others = [
        cache_key("text2", ("triple", "cpu", "+a"), ("passes", None)),
        cache_key("text", ("triple", "cpu2", "+a"), ("passes", None)),
        cache_key("text", ("triple", "cpu", "-a"), ("passes", None)),
        cache_key("text", ("triple", "cpu", "+a"), ("passes", 2)),
    ]
    assert len({base, *others}) == 5


HAMMER = """
import sys
from argosy_cinn.runtime.cache import ObjectCache

cache = ObjectCache(sys.argv[1], limit_bytes=200_000)
for i in range(200):
    key = f"k{i % 7}"
    got = cache.get(key)
    if got is not None and got != key.encode() * 1000:
        sys.exit("a torn entry was read")
    cache.put(key, key.encode() * 1000)
"""


def test_processes_share_a_folder(tmp_path):
    """Readers and writers in several processes see whole entries only."""
    command = [sys.executable, "-c", HAMMER, str(tmp_path / "objects")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, errors = process.communicate(timeout=3600)
        assert process.returncode == 0, errors


def test_the_environment_chooses_the_folder(monkeypatch, tmp_path):
    """ARGOSY_CACHE_DIR moves the cache; empty turns it off."""
    make = default_cache.__wrapped__
    monkeypatch.setenv("ARGOSY_CACHE_DIR", str(tmp_path))
    assert make().folder == tmp_path / "objects"
    monkeypatch.setenv("ARGOSY_CACHE_DIR", "")
    off = make()
    off.put("a", b"x")
    assert off.get("a") is None

"""Compiled objects on disk, so that a program compiles once per machine.

An entry is one file: a header, the SHA-256 of its key and content, the content. Its name is the key: a hash of
everything that decides the machine code; a file under another's name is damaged, too. Machine code is trusted, so the
folder must belong to the user and be writable by nobody else; a folder that is not is refused, and the cache then holds
nothing. Entries are replaced whole (see `argosy_hwadapt.files`): readers in other processes see all of one or
none. A damaged entry is deleted and compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path

from argosy_cinn.call_once import call_once
from argosy_cinn.settings import APP_DATA, CACHE_DIR
from argosy_hwadapt.files import read_regular_file, write_file
from argosy_phi_ops.settings import CACHE_HOME
from argosy_phi_ops.user_line import warn_user

_MAGIC = b"argosy-object-2\n"
_SUFFIX = ".obj"
DEFAULT_LIMIT = 1 << 30


def cache_key(text: str, target_key: tuple[str, str, str], options: tuple[object, ...] = ()) -> str:
    """The name of an entry: module text, machine, versions of generator and code generator, and options."""
    digest = hashlib.sha256()
    for part in (text, *target_key, *code_generator_version(), *map(repr, options)):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@call_once
def code_generator_version() -> tuple[str, str]:
    """(llvmlite's version, operating system): part of every key. llvmlite bundles its LLVM, so its version
    fixes both.
    """
    from llvmlite import __version__

    return __version__, sys.platform


def _header(key: str, content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(key.encode() + b"\n" + content).digest()


class ObjectCache:
    """A folder of entries, bounded in size; ``folder=None`` is a cache that holds nothing."""

    def __init__(self, folder: str | os.PathLike[str] | None, limit_bytes: int = DEFAULT_LIMIT) -> None:
        self.folder = Path(folder) if folder is not None else None
        self.limit_bytes = limit_bytes
        self.hits = 0
        # measure the folder at the first write, then after every eighth of the limit
        self._written = limit_bytes // 8
        self._ready: bool | None = None
        self._refused = False

    def get(self, key: str) -> bytes | None:
        """The content of an entry, or None. A damaged entry is removed."""
        path = self._path(key)
        try:
            data = (read_regular_file(path) or b"") if path is not None else b""
        except OSError:
            data = b""
        content = data[len(_MAGIC) + 32 :]
        if data[: len(data) - len(content)] != _header(key, content):
            if data and path is not None:
                self._remove(path)
            return None
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(path)  # type: ignore[arg-type]  # the least recently used go first
        return content

    def discard(self, key: str) -> None:
        """Delete an entry that is whole but of no use."""
        path = self._path(key)
        if path is not None:
            self._remove(path)

    def put(self, key: str, content: bytes) -> None:
        """Store an entry. A folder that cannot be written is not an error: after one warning nothing is stored."""
        path = self._path(key)
        if path is None or self._refused or len(content) > self.limit_bytes:
            return
        try:
            write_file(path, [_header(key, content), content], private=True, durable=False)
        except OSError as error:
            self._refuse(error)
            return
        self._written += len(content)
        if self._written * 8 >= self.limit_bytes:
            self._written = 0
            self.trim()

    def _refuse(self, error: OSError) -> None:
        """Store nothing from now on."""
        self._refused = True
        warn_user(
            f"object cache {self.folder} cannot be written ({error.strerror or error}): what is compiled is not kept. "
            "ARGOSY_CACHE_DIR names another folder",
            RuntimeWarning,
        )

    def trim(self) -> None:
        """Delete the least recently used entries until the folder is within its limit."""
        found = []
        for path in self.folder.glob("*" + _SUFFIX) if self.folder is not None else ():
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit_bytes:
                break
            self._remove(path)
            total -= size

    def names(self, prefix: str = "") -> list[str]:
        """The keys of entries that begin with ``prefix``."""
        found = self.folder.glob(f"{prefix}*{_SUFFIX}") if self.folder is not None else ()
        return sorted(path.name[: -len(_SUFFIX)] for path in found)

    def clear(self) -> None:
        """Delete every entry."""
        for path in self.folder.glob("*" + _SUFFIX) if self.folder is not None else ():
            self._remove(path)

    @staticmethod
    def _remove(path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()

    def _path(self, key: str) -> Path | None:
        if self._ready is None:
            self._ready = self._prepare()
        return self.folder / (key + _SUFFIX) if self._ready and self.folder is not None else None

    def _prepare(self) -> bool:
        """Make the folder; False (with one warning where it is unsafe) when it cannot be used."""
        if self.folder is None:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
        except OSError as error:
            self._refuse(error)
            return False
        if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            warn_user(
                f"object cache {self.folder} is not used: it must belong to you and be writable by you alone "
                "(chmod 700)",
                RuntimeWarning,
            )
            return False
        return True


@call_once
def default_cache() -> ObjectCache:
    """The user's cache: ``ARGOSY_CACHE_DIR`` (empty: none), else ``argosy/objects`` in the user's cache
    folder.
    """
    chosen = CACHE_DIR.read()
    if chosen is not None:
        return ObjectCache(Path(chosen) / "objects" if chosen else None)
    return ObjectCache(_user_cache_folder() / "argosy" / "objects")


def _user_cache_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(APP_DATA.read() or Path.home() / "AppData" / "Local")
    return Path(CACHE_HOME.read() or Path.home() / ".cache")

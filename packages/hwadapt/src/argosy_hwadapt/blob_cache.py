"""Built kernels on disk: found again by what they were built from, readable and writable by their owner
alone, bounded in size.

Any number of processes may use one folder. A blob is renamed into place whole, and whoever reads a blob that another
process deletes has it open. What two processes delete at once is built again at worst.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import time_ns

from argosy_hwadapt.errors import DeviceError

_MAGIC = b"argosy-blob-1\n"
_DIGEST_BYTES = 32
#: A blob is not complete under such a name, and its writer is gone after this many seconds.
_TEMPORARY, _ABANDONED_SECONDS = ".writing-", 3600
DEFAULT_LIMIT = 1 << 30


class BlobCache:
    """A folder of blobs. Blobs are machine code, so a folder that others may write to is refused.

    Above ``limit_bytes`` the blobs that were least recently used are deleted.
    """

    def __init__(self, folder: str | os.PathLike[str], limit_bytes: int = DEFAULT_LIMIT) -> None:
        """Open the folder, making it with mode 0700 if need be. Raises DeviceError if others may
        write to it.
        """
        self.folder = Path(folder)
        self.limit_bytes = limit_bytes
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self.folder)

    @staticmethod
    def key(parts: Iterable[str | bytes]) -> str:
        """Return the name for a blob made from these parts; no two lists of parts share one."""
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return the blob, or None if there is none or its file is damaged or not ours."""
        path = self.folder / key
        try:
            with open(path, "rb", opener=_open_at_once) as file:
                if not _is_private_file(os.fstat(file.fileno())):
                    return None
                content = file.read()
        except OSError:
            return None
        head, blob = content[: len(_MAGIC) + _DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
        if head != _MAGIC + hashlib.sha256(blob).digest():
            return None
        with suppress(OSError):
            _note_use(path)
        return blob

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the stored blob, or make and store it."""
        blob = self.get(key)
        if blob is None:
            blob = make()
            self.put(key, blob)
        return blob

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob; readers see all of it or nothing. One that is larger than the limit is not stored."""
        content = _MAGIC + hashlib.sha256(blob).digest() + blob
        if len(content) > self.limit_bytes:
            return
        descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.folder)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            _note_use(temporary)
            os.replace(temporary, self.folder / key)
        except BaseException:
            os.unlink(temporary)
            raise
        self.trim()

    def trim(self) -> None:
        """Delete what killed writers left, then the least recently used blobs until the rest is within the limit."""
        total, found = 0, []
        for entry in os.scandir(self.folder):
            with suppress(OSError):  # another process has deleted it since
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if entry.name.startswith(_TEMPORARY):
                    _unlink_abandoned(entry.path, status)
                    continue
                found.append((status.st_mtime_ns, status.st_size, entry.path))
                total += status.st_size
        for used, size, path in sorted(found):
            if total <= self.limit_bytes:
                return
            with suppress(FileNotFoundError):
                if os.stat(path).st_mtime_ns != used:
                    continue  # another process has used it since
                os.unlink(path)
            total -= size


def _note_use(path: str | Path) -> None:
    """Set a file's time of change to now, finer than the system does it by itself (some milliseconds)."""
    os.utime(path, ns=(time_ns(), time_ns()))


def _unlink_abandoned(path: str, status: os.stat_result) -> None:
    if status.st_mtime_ns < time_ns() - _ABANDONED_SECONDS * 10**9:
        os.unlink(path)


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for the other end, should the file be a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_private(folder: Path) -> None:
    if not _is_private(folder.stat()):
        raise DeviceError(
            f"kernel cache folder {folder} is not private: it must belong to this user and be writable by nobody else"
        )


def _is_private_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # Windows: access lists of the user's profile protect the folder
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

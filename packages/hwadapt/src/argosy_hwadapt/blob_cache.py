"""Built kernels on disk: found again by what they were built from, readable and writable by their owner
alone.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from argosy_hwadapt.errors import DeviceError

_MAGIC = b"argosy-blob-1\n"
_DIGEST_BYTES = 32


class BlobCache:
    """A folder of blobs. Blobs are machine code, so a folder that others may write to is refused."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open the folder, making it with mode 0700 if need be. Raises DeviceError if others may
        write to it.
        """
        self.folder = Path(folder)
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
            with path.open("rb") as file:
                if not _is_private(os.fstat(file.fileno())):
                    return None
                content = file.read()
        except OSError:
            return None
        head, blob = content[: len(_MAGIC) + _DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
        return blob if head == _MAGIC + hashlib.sha256(blob).digest() else None

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the stored blob, or make and store it."""
        blob = self.get(key)
        if blob is None:
            blob = make()
            self.put(key, blob)
        return blob

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob; readers see all of it or nothing."""
        descriptor, temporary = tempfile.mkstemp(dir=self.folder)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(blob).digest() + blob)
            os.replace(temporary, self.folder / key)
        except OSError:
            os.unlink(temporary)
            raise


def _check_private(folder: Path) -> None:
    if not _is_private(folder.stat()):
        raise DeviceError(
            f"kernel cache folder {folder} is not private: it must belong to this user and be writable by nobody else"
        )


def _is_private(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # Windows: access lists of the user's profile protect the folder
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

"""Files that are replaced whole, alone or several at once, whenever the writer is killed.

A file is written beside its target under a name of its own, ``.<name>.<random>.argosy-tmp``, and renamed over it. The
writer holds a lock (``flock``) on it, which ends with the writer: a file whose lock is free was abandoned, and the next
writer into the folder removes it.

A folder is replaced by one exchange of names, see `replace_folder`.

Several files are replaced by one rename, that of their *leader*. The others are written first, under names that contain
a hash of the leader's content; `member_path` finds them there as soon as the leader is in place, and until they are
renamed to their own names.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: abandoned files stay
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "content_key",
    "member_path",
    "read_regular_file",
    "remove_abandoned",
    "replace_file",
    "replace_folder",
    "write_file",
    "write_files",
]

Path = str | os.PathLike[str]
Parts = Iterable[bytes | bytearray | memoryview]

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.argosy-tmp", re.DOTALL)
_LONGEST = 64  # characters of the target's name within a temporary one: names end at 255 bytes
_MOST_VISITED = 1000
_visited: set[str] = set()  # folders of which this process has removed abandoned files


def write_file(path: Path, parts: Parts, *, private: bool = False, durable: bool = True) -> None:
    """Replace a file by ``parts``, one after the other: whoever reads sees the old content or the new one.

    A file that is there keeps its permissions, a new one gets those of the process (``private``: its owner's alone).
    durable: on the disk when this returns. Raises OSError, and leaves the old file then.
    """
    target = os.path.realpath(path)
    with _temporary(target, parts, private, durable) as temporary:
        os.replace(temporary, target)
    if durable:
        _sync_folder(os.path.dirname(target))


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[str]:
    """The name of a file that a library may write to, which replaces ``path`` when the block ends, and is removed when
    it raises. Raises OSError, and leaves the old file then."""
    target = os.path.realpath(path)
    with _temporary(target, (), False, True) as temporary:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    _sync_folder(os.path.dirname(target))


@contextlib.contextmanager
def replace_folder(path: Path, drops: Callable[[str], bool]) -> Iterator[str]:
    """A fresh folder, in which files are to be replaced as `write_file` does, that takes the place of ``path`` when the
    block ends, and is removed when it raises. It begins with links to what the old folder has, but for the names that
    ``drops`` tells. Raises OSError, and leaves the old folder then.

    One exchange of names decides. Where the system has none (only Linux has, for most file systems), a writer that is
    killed between two renames leaves no folder of that name, and the old one beside it.
    """
    target = os.path.realpath(path)
    parent, name = os.path.split(target)
    remove_abandoned(parent)
    descriptor, temporary = _create_folder(parent, name)
    try:
        if os.path.isdir(target):
            ignored = lambda _, names: [n for n in names if drops(n) or _TEMPORARY.fullmatch(n)]  # noqa: E731
            shutil.copytree(target, temporary, True, ignored, _link, dirs_exist_ok=True)
        yield temporary
        _sync_folder(temporary)
        _exchange(temporary, target)
        _sync_folder(parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange(fresh: str, target: str) -> None:
    """Put ``fresh`` in the place of ``target``, which gets its name where there is one."""
    if not os.path.lexists(target):
        os.rename(fresh, target)
        return
    with contextlib.suppress(OSError, AttributeError):
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        if ctypes.CDLL(None).renameat2(here, os.fsencode(fresh), here, os.fsencode(target), exchange) == 0:
            return
    old = f"{fresh[: -len('.argosy-tmp')]}.old"
    os.rename(target, old)
    os.rename(fresh, target)
    os.rename(old, fresh)


def write_files(leader: Path, parts: Sequence[bytes], members: Mapping[str, Parts]) -> None:
    """Replace several files at once: readers that ask `member_path` see all of the old ones or all of the new ones.

    leader: the file that decides, with the content ``parts``; members: the others' contents by path. Where there are
    several members, the leader's content has to differ with theirs. Raises OSError, and leaves the old files then.
    """
    key = content_key(parts)
    with contextlib.ExitStack() as stack:
        staged = {path: stack.enter_context(_temporary(path, data, False, True)) for path, data in members.items()}
        for folder in sorted({os.path.dirname(os.path.abspath(path)) for path in (leader, *members)}):
            stack.enter_context(_locked_folder(folder))
        for path, temporary in staged.items():
            os.replace(temporary, _staging_path(path, key))
        write_file(leader, parts)
        for path in staged:
            os.replace(_staging_path(path, key), path)
            _remove_staged(path)
    for folder in {os.path.dirname(os.path.abspath(path)) for path in members}:
        _sync_folder(folder)


def member_path(path: Path, key: str) -> str:
    """The file with the content of ``path`` that belongs to the leader whose `content_key` is ``key``."""
    staged = _staging_path(os.fspath(path), key)
    return staged if os.path.exists(staged) else os.fspath(path)


def content_key(parts: Iterable[Any]) -> str:
    """The hash of a leader's content by which its members are found."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def read_regular_file(path: Path, accepted: Callable[[os.stat_result], bool] = lambda status: True) -> bytes | None:
    """The content of a file; None for anything else of that name (a pipe would wait for a writer), and for a file that
    ``accepted`` refuses. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not accepted(status):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        return file.read()


def remove_abandoned(folder: str) -> None:
    """Remove the temporary files of writers that were killed."""
    for name in _names(folder):
        if _TEMPORARY.fullmatch(name):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(os.path.join(folder, name))


# ---- temporary files


@contextlib.contextmanager
def _temporary(path: str, parts: Parts, private: bool, durable: bool) -> Iterator[str]:
    """A file beside ``path`` with these contents. What the caller has not renamed is removed."""
    folder, name = os.path.split(os.path.abspath(path))
    if durable or folder not in _visited:
        remove_abandoned(folder)
        if len(_visited) >= _MOST_VISITED:
            _visited.clear()
        _visited.add(folder)
    descriptor, temporary = _create(folder, name, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _keep_mode(path, descriptor)
            for part in parts:
                file.write(part)
            file.flush()
            if durable:
                os.fsync(descriptor)
            yield temporary
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _create(folder: str, name: str, mode: int) -> tuple[int, str]:
    while True:
        temporary = os.path.join(folder, f".{name[:_LONGEST]}.{os.urandom(8).hex()}.argosy-tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:  # nobody removes it, or has before it was locked
            return descriptor, temporary
        os.close(descriptor)


def _create_folder(parent: str, name: str) -> tuple[int, str]:
    while True:
        temporary = os.path.join(parent, f".{name[:_LONGEST]}.{os.urandom(8).hex()}.argosy-tmp")
        os.mkdir(temporary)
        if fcntl is None:
            return -1, temporary
        with contextlib.suppress(FileNotFoundError):  # removed before it was opened
            descriptor = os.open(temporary, os.O_RDONLY)
            if _lock(descriptor) and os.path.isdir(temporary):
                return descriptor, temporary
            os.close(descriptor)


def _keep_mode(path: str, descriptor: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.fchmod(descriptor, os.stat(path).st_mode & 0o777)


def _lock(descriptor: int) -> bool:
    """Whether what was just made is this writer's; another one that took it for abandoned removes it otherwise."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
    return True


def _remove_if_abandoned(path: str) -> None:
    if fcntl is None:
        return
    is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    descriptor = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its writer lives
        if is_folder:
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    finally:
        os.close(descriptor)


# ---- several files


def _staging_path(path: str, key: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{key}.staged")


def _remove_staged(path: str) -> None:
    """Remove what killed writers have staged for ``path``; the folder is locked."""
    folder, name = os.path.split(os.path.abspath(path))
    pattern = re.compile(re.escape(f".{name}.") + r"[0-9a-f]{16}\.staged")
    for each in _names(folder):
        if pattern.fullmatch(each):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, each))


@contextlib.contextmanager
def _locked_folder(folder: str) -> Iterator[None]:
    """One writer of several files at a time, where the file system can lock folders."""
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else -1
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _sync_folder(folder: str) -> None:
    """Make renames in a folder durable, where folders can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

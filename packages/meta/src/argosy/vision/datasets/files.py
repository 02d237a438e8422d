"""Where the files of data sets lie, and how much of them is read. Nothing is downloaded."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy.settings import user_cache
from argosy.vision.image import get_image_backend

__all__ = ["LIMIT", "backend_of", "find_file", "mode_of", "report_damage"]

LIMIT = 1 << 30
"""Bytes that one member of an archive may have once it is unpacked."""


def find_file(given: str | None, dataset: str, folder: str, name: str, argument: str) -> Path:
    """The file ``given``, or the one called ``name`` in Paddle's cache folder. Raises FileNotFoundError otherwise."""
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise FileNotFoundError(f"{dataset}: {argument} {str(path)!r} is not a file")
        return path
    path = user_cache() / "dataset" / folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{dataset}: argosy downloads nothing. Put {name} into {path.parent} or name the file with {argument}="
        )
    return path


_DAMAGED = (zlib.error, EOFError, OSError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, UnicodeDecodeError)


@contextmanager
def report_damage(path: str | Path) -> Iterator[None]:
    """Raises ValueError naming ``path`` where what is read within the block is damaged, or no such archive."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except _DAMAGED as error:
        raise ValueError(f"{path} is damaged or of another format: {' '.join(str(error).split())}") from error


def mode_of(dataset: str, mode: str, modes: tuple[str, ...]) -> str:
    """``mode`` in small letters. Raises ValueError for one that the data set lacks."""
    if mode.lower() not in modes:
        raise ValueError(f"{dataset}: mode should be one of {modes}, got {mode!r}")
    return mode.lower()


def backend_of(dataset: str, backend: str | None) -> str:
    """What pictures are given as: "pil" or "cv2", None for the process' choice. Raises ValueError for another."""
    backend = get_image_backend() if backend is None else backend
    if backend not in ("pil", "cv2"):
        raise ValueError(f"{dataset}: backend should be 'pil' or 'cv2', got {backend!r}")
    return backend

"""Pictures in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from argosy.io.dataset import Dataset
from argosy.vision.image import get_image_backend, image_load

__all__ = ["DatasetFolder", "ImageFolder"]

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
Valid = Callable[[str], bool]


def _load(path: str) -> Any:
    found = image_load(path)
    return found.convert("RGB") if get_image_backend() == "pil" else found


def _test(extensions: Sequence[str] | None, is_valid_file: Valid | None) -> Valid:
    if extensions is not None and is_valid_file is not None:
        raise ValueError("give extensions or is_valid_file, not both")
    if is_valid_file is not None:
        return is_valid_file
    endings = tuple(e.lower() for e in (EXTENSIONS if extensions is None else extensions))
    return lambda path: path.lower().endswith(endings)


def _files(folder: str, valid: Valid) -> Iterator[str]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            if valid(path):
                yield path


class DatasetFolder(Dataset):
    """Pairs of what ``loader`` makes of a file and the number of its class, for ``root/class/.../file``.

    ``classes`` are the folders' names in order, ``class_to_idx`` their numbers, ``samples`` the files with theirs.
    """

    def __init__(
        self,
        root: str,
        loader: Callable[[str], Any] | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None,
        is_valid_file: Valid | None = None,
    ) -> None:
        self.root, self.transform = root, transform
        self.loader = _load if loader is None else loader
        self.extensions = EXTENSIONS if extensions is None and is_valid_file is None else extensions
        valid = _test(extensions, is_valid_file)
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples = [
            (path, i) for name, i in self.class_to_idx.items() for path in _files(os.path.join(root, name), valid)
        ]
        if not self.samples:
            raise RuntimeError(f"DatasetFolder: no file of {self.extensions} in the folders of {root!r}")
        self.targets = [i for _, i in self.samples]

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        sample = self.loader(path)
        return (sample if self.transform is None else self.transform(sample)), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(Dataset):
    """Lists of one picture each, for all files below ``root``."""

    def __init__(
        self,
        root: str,
        loader: Callable[[str], Any] | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None,
        is_valid_file: Valid | None = None,
    ) -> None:
        self.root, self.transform = root, transform
        self.loader = _load if loader is None else loader
        self.extensions = EXTENSIONS if extensions is None and is_valid_file is None else extensions
        self.samples = list(_files(root, _test(extensions, is_valid_file)))
        if not self.samples:
            raise RuntimeError(f"ImageFolder: no file of {self.extensions} below {root!r}")

    def __getitem__(self, index: int) -> list[Any]:
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self) -> int:
        return len(self.samples)

"""Oxford Flowers (Nilsback and Zisserman, 2008) and PASCAL VOC 2012 (Everingham et al.), out of their archives.

Members are read when they are asked for; nothing is unpacked on the disk.
"""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from argosy.io.dataset import Dataset
from argosy.vision.datasets.files import LIMIT, backend_of, find_file, mode_of, report_damage
from argosy.vision.image import pillow

__all__ = ["VOC2012", "Flowers"]


class _Archive:
    """Members of a tar file, by name; each process opens the file itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open = threading.local()
        with report_damage(path), tarfile.open(path) as archive:
            self.members = {member.name: member for member in archive if member.isfile()}

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "members": self.members}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = threading.local()

    def read(self, name: str) -> bytes:
        """The bytes of a member. Raises ValueError where there is none, or one that is too large."""
        member = self.members.get(name)
        if member is None or member.size > LIMIT:
            raise ValueError(f"{self.path} holds no file {name} that could be read")
        with report_damage(self.path):
            if getattr(self._open, "process", None) != os.getpid():  # a forked worker must not share the position
                self._open.archive, self._open.process = tarfile.open(self.path), os.getpid()
            content: bytes = self._open.archive.extractfile(member).read()
        return content

    def picture(self, name: str, wanted_by: str) -> Any:
        """The picture in a member."""
        return pillow("Image", wanted_by).open(io.BytesIO(self.read(name)))


class Flowers(Dataset):
    """Pairs of a picture and its label, int64 ``[1]``, from 1 to 102.

    data_file: ``102flowers.tgz``; label_file: ``imagelabels.mat``; setid_file: ``setid.mat``, which scipy reads; mode:
    "train", "valid" or "test" (of Paddle's: "train" is the larger part, which was published as that for tests).
    """

    PARTS: ClassVar[dict[str, str]] = {"train": "tstid", "valid": "valid", "test": "trnid"}

    def __init__(
        self,
        data_file: str | None = None,
        label_file: str | None = None,
        setid_file: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        mode = mode_of("Flowers", mode, tuple(self.PARTS))
        self.backend, self.transform = backend_of("Flowers", backend), transform
        data = find_file(data_file, "Flowers", "flowers", "102flowers.tgz", "data_file")
        labels = find_file(label_file, "Flowers", "flowers", "imagelabels.mat", "label_file")
        parts = find_file(setid_file, "Flowers", "flowers", "setid.mat", "setid_file")
        try:
            loadmat = import_module("scipy.io").loadmat
        except ModuleNotFoundError as error:
            raise ImportError("Flowers needs scipy: python -m pip install scipy", name="scipy") from error
        self.archive = _Archive(data)
        self.labels = loadmat(labels)["labels"][0]
        self.indexes = loadmat(parts)[self.PARTS[mode]][0]

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        number = int(self.indexes[idx])
        image = self.archive.picture(f"jpg/image_{number:05d}.jpg", "Flowers")
        if self.backend == "cv2":
            image = np.array(image)
        if self.transform is not None:
            image = self.transform(image)
        if self.backend == "cv2":
            image = image.astype(np.float32)
        return image, np.array([self.labels[number - 1]], np.int64)

    def __len__(self) -> int:
        return len(self.indexes)


class VOC2012(Dataset):
    """Pairs of a picture and the picture of its segments.

    data_file: ``VOCtrainval_11-May-2012.tar``; mode: "train", "valid" or "test" (Paddle's: "train" is "trainval",
    "test" is "train").
    """

    PARTS: ClassVar[dict[str, str]] = {"train": "trainval", "valid": "val", "test": "train"}
    ROOT = "VOCdevkit/VOC2012"

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        part = self.PARTS[mode_of("VOC2012", mode, tuple(self.PARTS))]
        self.backend, self.transform = backend_of("VOC2012", backend), transform
        self.archive = _Archive(find_file(data_file, "VOC2012", "voc2012", "VOCtrainval_11-May-2012.tar", "data_file"))
        self.names = self.archive.read(f"{self.ROOT}/ImageSets/Segmentation/{part}.txt").decode().split()

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        name = self.names[idx]
        data = self.archive.picture(f"{self.ROOT}/JPEGImages/{name}.jpg", "VOC2012")
        label = self.archive.picture(f"{self.ROOT}/SegmentationClass/{name}.png", "VOC2012")
        if self.backend == "cv2":
            data, label = np.array(data), np.array(label)
        if self.transform is not None:
            data = self.transform(data)
        if self.backend == "cv2":
            return data.astype(np.float32), label.astype(np.int64)
        return data, label

    def __len__(self) -> int:
        return len(self.names)

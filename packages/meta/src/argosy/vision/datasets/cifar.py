"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the archives of their pickled batches."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from argosy.framework.paddle_pickle import loads
from argosy.io.dataset import Dataset
from argosy.vision.datasets.files import LIMIT, backend_of, find_file, mode_of, report_damage
from argosy.vision.image import pillow

__all__ = ["Cifar10", "Cifar100"]


class Cifar10(Dataset):
    """Pairs of a picture 32 x 32 and its label, an int64 number.

    data_file: the archive of Python batches, ``.tar.gz``, which is read without executing anything; mode: "train" or
    "test"; backend: "pil", or "cv2" for arrays ``[32, 32, 3]`` float32.
    """

    FILE = "cifar-10-python.tar.gz"
    PARTS: ClassVar[dict[str, str]] = {"train": "data_batch", "test": "test_batch"}
    LABELS = "labels"

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        kind = type(self).__name__
        self.mode = mode_of(kind, mode, ("train", "test"))
        self.backend = backend_of(kind, backend)
        self.data_file = str(find_file(data_file, kind, "cifar", self.FILE, "data_file"))
        self.transform = transform
        pictures, labels = [], []
        with report_damage(self.data_file), tarfile.open(self.data_file) as archive:
            for member in archive:
                if self.PARTS[self.mode] in member.name.rpartition("/")[2] and member.isfile():
                    batch = _batch(archive, member, kind)
                    pictures.append(np.asarray(batch["data"], np.uint8).reshape(-1, 3, 32, 32))
                    labels += list(batch[self.LABELS])
        if not pictures:
            raise ValueError(f"{kind}: {self.data_file} holds no {self.PARTS[self.mode]}")
        self.data = np.concatenate(pictures).transpose(0, 2, 3, 1)
        self.labels = np.asarray(labels, np.int64)
        if len(self.data) != len(self.labels):
            raise ValueError(f"{kind}: {len(self.data)} pictures and {len(self.labels)} labels")

    def __getitem__(self, idx: int) -> tuple[Any, np.int64]:
        image: Any = self.data[idx]
        image = (
            pillow("Image", type(self).__name__).fromarray(image) if self.backend == "pil" else image.astype("float32")
        )
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[idx]

    def __len__(self) -> int:
        return len(self.data)


class Cifar100(Cifar10):
    """The same of a hundred kinds."""

    FILE = "cifar-100-python.tar.gz"
    PARTS: ClassVar[dict[str, str]] = {"train": "train", "test": "test"}
    LABELS = "fine_labels"


def _batch(archive: tarfile.TarFile, member: tarfile.TarInfo, kind: str) -> dict[str, Any]:
    if member.size > LIMIT:
        raise ValueError(f"{kind}: {member.name} claims {member.size} bytes")
    file = archive.extractfile(member)
    assert file is not None
    found = loads(file.read(), member.name, lambda array, name: array)
    if not isinstance(found, dict):
        raise ValueError(f"{kind}: {member.name} holds no batch")
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in found.items()}

"""MNIST (LeCun et al., 1998) and Fashion-MNIST (Xiao et al., 2017), from their IDX files, packed or not."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from argosy.io.dataset import Dataset
from argosy.vision.datasets.files import LIMIT, backend_of, find_file, mode_of, report_damage
from argosy.vision.image import as_picture, pillow

__all__ = ["MNIST", "FashionMNIST"]

_UNSIGNED_BYTES = 8


class MNIST(Dataset):
    """Pairs of a picture 28 x 28 and its label, int64 ``[1]``.

    image_path, label_path: the IDX files, as they are published (``.gz``) or unpacked; mode: "train" or "test";
    transform: of the picture; download: taken as Paddle takes it, though nothing is; backend: "pil" gives pictures
    of Pillow, "cv2" arrays ``[28, 28]`` float32.
    """

    NAME = "mnist"

    def __init__(
        self,
        image_path: str | None = None,
        label_path: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        kind = type(self).__name__
        self.mode = mode_of(kind, mode, ("train", "test"))
        self.backend = backend_of(kind, backend)
        prefix = "train" if self.mode == "train" else "t10k"
        names = f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"
        self.image_path = str(find_file(image_path, kind, self.NAME, names[0], "image_path"))
        self.label_path = str(find_file(label_path, kind, self.NAME, names[1], "label_path"))
        self.transform = transform
        pictures = _read(Path(self.image_path), 3)
        self._size = pictures.shape[1:]
        # Subclasses read these two as Paddle's hold them: rows of float32, and one label each.
        self.images = list(pictures.reshape(len(pictures), -1).astype(np.float32))
        self.labels = list(_read(Path(self.label_path), 1).astype(np.int64).reshape(-1, 1))
        if len(self.images) != len(self.labels):
            raise ValueError(f"{kind}: {len(self.images)} pictures and {len(self.labels)} labels")

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        image: Any = self.images[idx].reshape(self._size)
        if self.backend == "pil":
            image = as_picture(pillow("Image", type(self).__name__).fromarray(image.astype(np.uint8)), "pil")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[idx]

    def __len__(self) -> int:
        return len(self.labels)


class FashionMNIST(MNIST):
    """The same of ten kinds of clothing."""

    NAME = "fashion-mnist"


def _read(path: Path, axes: int) -> np.ndarray:
    """The unsigned bytes in an IDX file of ``axes`` axes. Raises ValueError for another file."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with report_damage(path), gzip.open(path) if packed else path.open("rb") as file:
        head = file.read(4 + 4 * axes)
        if len(head) < 4 + 4 * axes or head[:4] != bytes((0, 0, _UNSIGNED_BYTES, axes)):
            raise ValueError(f"{path} is no IDX file of bytes with {axes} axes")
        shape = struct.unpack(f">{axes}I", head[4:])
        count = 1
        for n in shape:
            count *= n
        limit = path.stat().st_size * (1032 if packed else 1)  # DEFLATE gains no more
        if count > min(limit, LIMIT):
            raise ValueError(f"{path} claims {list(shape)} bytes, more than it can hold")
        data = file.read(count)
    if len(data) < count:
        raise ValueError(f"{path} ends after {len(data)} of {count} bytes")
    return np.frombuffer(data, np.uint8).reshape(shape)

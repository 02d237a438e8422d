"""Data sets are read from local files, damaged and hostile ones are refused, and nothing is downloaded."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.vision import datasets
from argosy.vision import transforms as T
from argosy_tensorcore.safetensors import CheckpointError

Image = pytest.importorskip("PIL.Image")
PICTURES = np.arange(5 * 28 * 28, dtype=np.uint8).reshape(5, 28, 28)


def idx(path: Path, values: np.ndarray, shape: Any = None, packed: bool = True) -> str:
    head = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *(shape or values.shape))
    data = head + values.tobytes()
    path.write_bytes(gzip.compress(data) if packed else data)
    return str(path)


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_of_idx_files(tmp_path: Path, packed: bool) -> None:
    images = idx(tmp_path / "images", PICTURES, packed=packed)
    labels = idx(tmp_path / "labels", np.arange(5, dtype=np.uint8), packed=packed)
    found = datasets.MNIST(images, labels, mode="test")
    assert (found.images[0].shape, found.images[0].dtype, found.labels[0].shape) == ((784,), np.float32, (1,))
    assert len(found) == 5
    picture, label = found[3]
    assert picture.size == (28, 28)
    assert label.tolist() == [3]
    assert label.dtype == np.int64
    arrays = datasets.FashionMNIST(images, labels, transform=T.ToTensor(), backend="cv2")
    loader = argosy.io.DataLoader(arrays, batch_size=2)
    batch, labels = next(iter(loader))
    assert batch.shape == [2, 1, 28, 28]
    np.testing.assert_array_equal(batch.numpy()[1, 0], PICTURES[1].astype(np.float32))


def test_idx_files_that_lie_are_refused(tmp_path: Path) -> None:
    labels = idx(tmp_path / "labels", np.arange(5, dtype=np.uint8))
    with pytest.raises(ValueError, match="claims"):
        datasets.MNIST(idx(tmp_path / "huge", PICTURES, (1 << 31, 1 << 15, 1 << 15)), labels)
    with pytest.raises(ValueError, match="ends after"):
        datasets.MNIST(idx(tmp_path / "short", PICTURES, (6, 28, 28)), labels)
    with pytest.raises(ValueError, match="no IDX file"):
        datasets.MNIST(labels, labels)
    with pytest.raises(ValueError, match="5 pictures and 4 labels"):
        datasets.MNIST(idx(tmp_path / "i", PICTURES), idx(tmp_path / "l", np.arange(4, dtype=np.uint8)))


def test_a_missing_file_is_an_error_that_says_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte\.gz into .*mnist"):
        datasets.MNIST()
    with pytest.raises(FileNotFoundError, match=r"data_file .* is not a file"):
        datasets.Cifar10("nowhere.tar.gz")
    with pytest.raises(ValueError, match="mode"):
        datasets.Cifar10(mode="training")


def archive(path: Path, members: dict[str, bytes]) -> str:
    with tarfile.open(path, "w:gz") as made:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return str(path)


def test_cifar_of_pickled_batches(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 256, (4, 3072), np.uint8)
    batches = {
        f"cifar-10-batches-py/data_batch_{i}": pickle.dumps(
            {b"data": data[2 * i : 2 * i + 2], b"labels": [i, i + 1]}, protocol=2
        )
        for i in range(2)
    }
    found = datasets.Cifar10(archive(tmp_path / "c.tar.gz", batches), backend="cv2")
    assert len(found) == 4
    picture, label = found[3]
    np.testing.assert_array_equal(picture, data[3].reshape(3, 32, 32).transpose(1, 2, 0))
    assert label == 2


class Hostile:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_a_batch_that_would_execute_something_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "c.tar.gz", {"cifar-100-python/train": pickle.dumps(Hostile())})
    with pytest.raises(CheckpointError, match="system"):
        datasets.Cifar100(path)


def saved(size: tuple[int, int] = (6, 4)) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((*size, 3), 90, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def test_folders_of_pictures(tmp_path: Path) -> None:
    for name in ("b/1.png", "a/2.png", "a/deep/3.PNG", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(saved())
    found = datasets.DatasetFolder(str(tmp_path), transform=T.ToTensor())
    assert found.classes == ["a", "b"]
    assert found.targets == [0, 0, 1]
    picture, label = found[2]
    assert picture.shape == [3, 6, 4]
    assert label == 1
    assert len(datasets.ImageFolder(str(tmp_path))) == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="no file"):
        datasets.ImageFolder(str(tmp_path / "empty"))


def test_voc_segments(tmp_path: Path) -> None:
    root = "VOCdevkit/VOC2012"
    members = {
        f"{root}/ImageSets/Segmentation/val.txt": b"p1\np2\n",
        **{f"{root}/JPEGImages/p{i}.jpg": saved() for i in (1, 2)},
        **{f"{root}/SegmentationClass/p{i}.png": saved() for i in (1, 2)},
    }
    found = datasets.VOC2012(archive(tmp_path / "v.tar", members), mode="valid", backend="cv2")
    assert len(found) == 2
    data, label = found[1]
    assert data.shape == (6, 4, 3)
    assert label.dtype == np.int64
    batches = list(argosy.io.DataLoader(found, batch_size=1, num_workers=2))
    assert [b[0].shape for b in batches] == [[1, 6, 4, 3]] * 2


def test_flowers(tmp_path: Path) -> None:
    savemat = pytest.importorskip("scipy.io").savemat
    savemat(tmp_path / "l.mat", {"labels": [[5, 7]]})
    savemat(tmp_path / "s.mat", {"valid": [[2]]})
    flowers = archive(tmp_path / "f.tgz", {"jpg/image_00002.jpg": saved()})
    found = datasets.Flowers(flowers, str(tmp_path / "l.mat"), str(tmp_path / "s.mat"), "valid")
    picture, label = found[0]
    assert picture.size == (4, 6)
    assert label.tolist() == [7]

"""A real English text that every CPython carries, as bytes: the help topics of pydoc, about 460 KB."""

from __future__ import annotations

from collections.abc import Iterator
from pydoc_data.topics import topics

import numpy as np

from argosy import io

BLOCK = 4096  # bytes; every tenth block is for validation


def read_text() -> np.ndarray:
    """The text as one row of bytes."""
    return np.frombuffer("\n\n".join(topics[key] for key in sorted(topics)).encode("utf-8"), np.uint8)


def split(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(train, validation): nine blocks of ten, and the tenth."""
    blocks = np.arange(len(text)) // BLOCK
    held_out = blocks % 10 == 9
    return text[~held_out], text[held_out]


class Windows(io.Dataset):
    """Stretches of ``length`` bytes and the bytes that follow each, at any offset of a text."""

    def __init__(self, text: np.ndarray, length: int) -> None:
        self.text, self.length = text.astype(np.int64), length

    def __getitem__(self, start: int) -> tuple[np.ndarray, np.ndarray]:
        window = self.text[start : start + self.length + 1]
        return window[:-1], window[1:]

    def __len__(self) -> int:
        return len(self.text) - self.length


class RandomBatches:
    """Batches of random offsets from step ``first`` on: a pure function of seed and step, so a run can go on
    anywhere.
    """

    def __init__(self, windows: Windows, batch: int, seed: int, first: int, last: int) -> None:
        self.count, self.batch, self.seed, self.first, self.last = len(windows), batch, seed, first, last

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.first, self.last):
            yield np.random.default_rng([self.seed, step]).integers(0, self.count, self.batch).tolist()

    def __len__(self) -> int:
        return self.last - self.first


def bigram_loss(train: np.ndarray, validation: np.ndarray) -> float:
    """Nats per byte of an interpolated byte-bigram model: the yardstick.

    Witten-Bell interpolation: a byte seen n times with d different successors trusts its own counts by n / (n + d).
    """
    counts = np.zeros((256, 256))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    unigram = (np.bincount(train, minlength=256) + 1) / (len(train) + 256)
    total = counts.sum(1, keepdims=True)
    distinct = (counts > 0).sum(1, keepdims=True)
    model = (counts + np.maximum(distinct, 1) * unigram) / (total + np.maximum(distinct, 1))
    return float(-np.log(model[validation[:-1], validation[1:]]).mean())


def sequential_batches(text: np.ndarray, length: int, batch: int, limit: int | None = None) -> Iterator[np.ndarray]:
    """Non-overlapping windows of ``length + 1`` bytes, ``batch`` at a time."""
    count = (len(text) - 1) // length
    rows = np.stack([text[i * length : i * length + length + 1] for i in range(count)]).astype(np.int64)
    full = count // batch
    for i in range(full if limit is None else min(limit, full)):
        yield rows[i * batch : (i + 1) * batch]

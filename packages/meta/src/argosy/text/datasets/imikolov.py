"""The Penn Treebank in the form of Mikolov et al. (2010), out of ``simple-examples.tgz``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from argosy.io.dataset import Dataset
from argosy.text.datasets.words import Word, contents, word_indices
from argosy.vision.datasets.files import find_file, mode_of

__all__ = ["Imikolov"]

_MEMBER = re.compile(r"simple-examples/data/ptb\.(train|valid|test)\.txt")


class Imikolov(Dataset):
    """Sequences of numbers of words: ``window_size`` neighbours ("NGRAM"), or a line and the same one word on ("SEQ").

    data_file: the archive as it is published; mode: "train" or "test"; window_size: how many words an n-gram has, or
    how many a line may have at most (any number, if it is not positive); min_word_freq: words must occur more often, in
    the training and validation parts together, to have a number of their own (``word_idx``); download: taken as Paddle
    takes it, though nothing is. Raises FileNotFoundError where the archive is not there, ValueError for other kinds,
    n-grams without a size, and where the archive lacks the part.
    """

    def __init__(
        self,
        data_file: str | None = None,
        data_type: str = "NGRAM",
        window_size: int = -1,
        mode: str = "train",
        min_word_freq: int = 50,
        download: bool = True,
    ) -> None:
        self.data_type = data_type.upper()
        if self.data_type not in ("NGRAM", "SEQ"):
            raise ValueError(f"Imikolov: data_type should be 'NGRAM' or 'SEQ', got {data_type!r}")
        if self.data_type == "NGRAM" and window_size < 0:
            raise ValueError(f"Imikolov: window_size should say how many words an n-gram has, got {window_size}")
        self.mode = mode_of("Imikolov", mode, ("train", "test"))
        self.window_size, self.min_word_freq = window_size, min_word_freq
        path = find_file(data_file, "Imikolov", "imikolov", "simple-examples.tgz", "data_file")
        self.data_file = str(path)
        parts = {name.split(".")[1]: text.splitlines() for name, text in contents(path, _MEMBER)}
        for part in {"train", "valid", self.mode} - parts.keys():
            raise ValueError(f"Imikolov: {self.data_file} holds no simple-examples/data/ptb.{part}.txt")
        counts = self.word_count(parts["valid"], self.word_count(parts["train"]))
        self.word_idx = word_indices(counts, min_word_freq)
        self.data: list[Any] = [item for line in parts[self.mode] for item in self._samples_of(line)]

    def word_count(self, f: Iterable[bytes], word_freq: Counter[Word] | None = None) -> Counter[Word]:
        """How often words occur in lines, each of which has a beginning and an end; added to ``word_freq``."""
        counts: Counter[Word] = Counter() if word_freq is None else word_freq
        for line in f:
            counts.update(line.split())
            counts.update(("<s>", "<e>"))
        return counts

    def _samples_of(self, line: bytes) -> list[Any]:
        unknown = self.word_idx["<unk>"]
        words = [self.word_idx.get(word, unknown) for word in line.split()]
        first, last = (self.word_idx.get(mark, unknown) for mark in ("<s>", "<e>"))
        size = self.window_size
        if self.data_type == "NGRAM":
            whole = [first, *words, last]
            return [tuple(whole[end - size : end]) for end in range(size, len(whole) + 1)]
        pair = [first, *words], [*words, last]
        return [] if 0 < size < len(pair[0]) else [pair]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)

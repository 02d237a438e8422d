"""Reviews of films (Maas et al., 2011), out of ``aclImdb_v1.tar.gz``."""

from __future__ import annotations

import re
import string
from collections import Counter

import numpy as np

from argosy.io.dataset import Dataset
from argosy.text.datasets.words import Word, contents, word_indices
from argosy.vision.datasets.files import find_file, mode_of

__all__ = ["Imdb"]

_MEMBER = re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt")
_PUNCTUATION = string.punctuation.encode()


class Imdb(Dataset):
    """Pairs of a review, the numbers of its words, and its label, int64 ``[1]``: 0 for praise, 1 for blame.

    data_file: the archive as it is published; mode: "train" or "test"; cutoff: words must occur more often, in both
    parts together, to have a number of their own (``word_idx``); download: taken as Paddle takes it, though nothing is.
    Raises FileNotFoundError where the archive is not there, ValueError where it holds no reviews.
    """

    def __init__(
        self, data_file: str | None = None, mode: str = "train", cutoff: int = 150, download: bool = True
    ) -> None:
        self.mode = mode_of("Imdb", mode, ("train", "test"))
        path = find_file(data_file, "Imdb", "imdb", "imdb%2FaclImdb_v1.tar.gz", "data_file")
        self.data_file = str(path)
        reviews = [(name, _words(text)) for name, text in contents(path, _MEMBER)]
        if not reviews:
            raise ValueError(f"Imdb: {self.data_file} holds no reviews under aclImdb/")
        self.word_idx = word_indices(Counter[Word](word for _, words in reviews for word in words), cutoff)
        self.docs: list[list[int]] = []
        self.labels: list[int] = []
        unknown = self.word_idx["<unk>"]
        for label, kind in enumerate(("pos", "neg")):
            start = f"aclImdb/{self.mode}/{kind}/"
            chosen = [words for name, words in reviews if name.startswith(start)]
            self.docs += [[self.word_idx.get(word, unknown) for word in words] for words in chosen]
            self.labels += [label] * len(chosen)

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.docs[idx]), np.array([self.labels[idx]])

    def __len__(self) -> int:
        return len(self.docs)


def _words(text: bytes) -> list[bytes]:
    return text.rstrip(b"\n\r").translate(None, _PUNCTUATION).lower().split()

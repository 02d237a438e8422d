"""Pairs of sentences of two languages, out of ``wmt14.tgz`` and ``wmt16.tar.gz``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from argosy.io.dataset import Dataset
from argosy.text.datasets.words import contents
from argosy.vision.datasets.files import find_file, mode_of

__all__ = ["WMT14", "WMT16"]

_START, _END, _UNKNOWN = "<s>", "<e>", "<unk>"
_LANGUAGES = ("en", "de")
_LONGEST = 80


class _Pairs(Dataset):
    """Numbers of the words of two sentences, and how they are given out."""

    src_dict: dict[str, int]
    trg_dict: dict[str, int]

    def __init__(self) -> None:
        self.src_ids: list[list[int]] = []
        self.trg_ids: list[list[int]] = []
        self.trg_ids_next: list[list[int]] = []

    def _add(self, source: str, target: str, longest: int | None = None) -> None:
        words = [self.trg_dict.get(word, self.trg_dict[_UNKNOWN]) for word in target.split()]
        marked = [_START, *source.split(), _END]
        numbers = [self.src_dict.get(word, self.src_dict[_UNKNOWN]) for word in marked]
        if longest is None or max(len(numbers), len(words)) <= longest:
            self.src_ids.append(numbers)
            self.trg_ids.append([self.trg_dict[_START], *words])
            self.trg_ids_next.append([*words, self.trg_dict[_END]])

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array(self.src_ids[idx]), np.array(self.trg_ids[idx]), np.array(self.trg_ids_next[idx])

    def __len__(self) -> int:
        return len(self.src_ids)


class WMT14(_Pairs):
    """An English and a French sentence: the source with its marks, the target with its beginning, and the same one
    word on, each int64.

    data_file: the archive of Paddle's excerpt; mode: "train", "test" or "gen"; dict_size: how many words have numbers,
    in the order of the archive's lists; download: taken as Paddle takes it, though nothing is. Pairs with more than 80
    words are left out. Raises FileNotFoundError where the archive is not there, ValueError for a size that is not
    positive or too small for the marks, and where the archive lacks its lists.
    """

    def __init__(
        self, data_file: str | None = None, mode: str = "train", dict_size: int = -1, download: bool = True
    ) -> None:
        super().__init__()
        self.mode = mode_of("WMT14", mode, ("train", "test", "gen"))
        path = find_file(data_file, "WMT14", "wmt14", "wmt14.tgz", "data_file")
        self.data_file, self.dict_size = str(path), _size("WMT14", "dict_size", dict_size)
        wanted = re.compile(rf".*(src\.dict|trg\.dict|{self.mode}/{self.mode})")
        members = [(name, content.decode()) for name, content in contents(path, wanted)]
        lists = {name[-8:]: text.splitlines()[:dict_size] for name, text in members if name.endswith(".dict")}
        for name in {"src.dict", "trg.dict"} - lists.keys():
            raise ValueError(f"WMT14: {self.data_file} holds no {name}")
        numbers = {name: {word.strip(): i for i, word in enumerate(words)} for name, words in lists.items()}
        self.src_dict, self.trg_dict = numbers["src.dict"], numbers["trg.dict"]
        if any(mark not in numbers for numbers in (self.src_dict, self.trg_dict) for mark in (_START, _END, _UNKNOWN)):
            raise ValueError(f"WMT14: the first {dict_size} words should hold {_START}, {_END} and {_UNKNOWN}")
        for source, target in _pairs(text for name, text in members if not name.endswith(".dict")):
            self._add(source, target, _LONGEST)

    def get_dict(self, reverse: bool = False) -> tuple[dict[str, int], dict[str, int]] | tuple[dict[int, str], ...]:
        """Numbers of the source's and of the target's words, or words of their numbers."""
        found = self.src_dict, self.trg_dict
        return tuple({i: word for word, i in numbers.items()} for numbers in found) if reverse else found


class WMT16(_Pairs):
    """An English and a German description of a picture (Elliott et al., 2016): the source with its marks, the target
    with its beginning, and the same one word on, each int64.

    data_file: the archive as Paddle publishes it; mode: "train", "test" or "val"; src_dict_size, trg_dict_size: how
    many words of the training part have numbers, three marks first, then the most frequent; lang: the source, "en" or
    "de"; download: taken as Paddle takes it, though nothing is. The target's words are those of the target's sentences
    (in Paddle 3.3 those of the source for both), and no file is written. Raises FileNotFoundError where the archive is
    not there, ValueError for sizes that are not positive, other languages, and where the archive lacks a part.
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        src_dict_size: int = -1,
        trg_dict_size: int = -1,
        lang: str = "en",
        download: bool = True,
    ) -> None:
        super().__init__()
        self.mode = mode_of("WMT16", mode, ("train", "test", "val"))
        if lang not in _LANGUAGES:
            raise ValueError(f"WMT16: lang should be one of {_LANGUAGES}, got {lang!r}")
        self.lang = lang
        self.src_dict_size = _size("WMT16", "src_dict_size", src_dict_size)
        self.trg_dict_size = _size("WMT16", "trg_dict_size", trg_dict_size)
        path = find_file(data_file, "WMT16", "wmt16", "wmt16.tar.gz", "data_file")
        self.data_file = str(path)
        wanted = re.compile(rf"wmt16/(train|{self.mode})")
        parts = {name.split("/")[1]: content.decode() for name, content in contents(path, wanted)}
        for part in {"train", self.mode} - parts.keys():
            raise ValueError(f"WMT16: {self.data_file} holds no wmt16/{part}")
        column = _LANGUAGES.index(lang)
        training = list(_pairs([parts["train"]]))
        self.src_dict = _frequent((pair[column] for pair in training), src_dict_size)
        self.trg_dict = _frequent((pair[1 - column] for pair in training), trg_dict_size)
        for pair in _pairs([parts[self.mode]]):
            self._add(pair[column], pair[1 - column])

    def get_dict(self, lang: str, reverse: bool = False) -> dict[str, int] | dict[int, str]:
        """Numbers of the words of ``lang``, or words of their numbers."""
        if lang not in _LANGUAGES:
            raise ValueError(f"WMT16: lang should be one of {_LANGUAGES}, got {lang!r}")
        numbers = self.src_dict if lang == self.lang else self.trg_dict
        return {i: word for word, i in numbers.items()} if reverse else numbers


def _size(dataset: str, argument: str, size: int) -> int:
    if size <= 0:
        raise ValueError(f"{dataset}: {argument} should be positive, got {size}")
    return size


def _pairs(texts: Iterable[str]) -> Iterator[list[str]]:
    """The two sides of all lines that have two."""
    for text in texts:
        for line in text.split("\n"):
            sides = line.strip().split("\t")
            if len(sides) == 2:
                yield sides


def _frequent(sentences: Iterable[str], size: int) -> dict[str, int]:
    """Numbers of the marks and of the most frequent words, of equals the first that is met; ``size`` at most."""
    counts = Counter(word for sentence in sentences for word in sentence.split())
    words = [word for word, _ in counts.most_common(max(size - 3, 0))]
    return {word: i for i, word in enumerate([_START, _END, _UNKNOWN, *words])}

"""Semantic roles of the Wall Street Journal (Carreras and Màrquez, 2005), out of ``conll05st-tests.tar.gz``."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from argosy.io.dataset import Dataset
from argosy.text.datasets.words import contents
from argosy.vision.datasets.files import LIMIT, find_file, report_damage

__all__ = ["Conll05st"]

_MEMBER = re.compile(r"conll05st-release/test\.wsj/(words|props)/test\.wsj\.\1\.gz")
_FOLDER = "conll05st"
_NEIGHBOURS = (-2, -1, 0, 1, 2)
_UNKNOWN = 0


class Conll05st(Dataset):
    """A sentence of ``n`` words and one of its predicates: nine int64 arrays ``[n]``.

    They are the numbers of the words, of the words two and one before the verb, of the verb, of the words one and two
    after it (these five repeated, "bos" and "eos" beyond the ends), of the predicate, marks of those five places, and
    the numbers of the roles. data_file: the archive as it is published; word_dict_file, verb_dict_file: a word or
    predicate a line, in the order of their numbers; target_dict_file: a role a line (``B-A0``); emb_file: vectors,
    whose path ``get_embedding`` gives; download: taken as Paddle takes it, though nothing is. Roles are numbered in
    alphabetical order (Paddle's order changes from process to process). Raises FileNotFoundError where a file is not
    there, ValueError where the archive lacks its parts or a role is not written as the task writes them.
    """

    def __init__(
        self,
        data_file: str | None = None,
        word_dict_file: str | None = None,
        verb_dict_file: str | None = None,
        target_dict_file: str | None = None,
        emb_file: str | None = None,
        download: bool = True,
    ) -> None:
        self.data_file = _locate(data_file, "conll05st-tests.tar.gz", "data_file")
        self.word_dict_file = _locate(word_dict_file, "conll05st%2FwordDict.txt", "word_dict_file")
        self.verb_dict_file = _locate(verb_dict_file, "conll05st%2FverbDict.txt", "verb_dict_file")
        self.target_dict_file = _locate(target_dict_file, "conll05st%2FtargetDict.txt", "target_dict_file")
        self.emb_file = _locate(emb_file, "conll05st%2Femb", "emb_file")
        self.word_dict = {line: i for i, line in enumerate(_lines(self.word_dict_file))}
        self.predicate_dict = {line: i for i, line in enumerate(_lines(self.verb_dict_file))}
        self.label_dict = _numbered_roles(_lines(self.target_dict_file))
        self.sentences: list[list[str]] = []
        self.predicates: list[str] = []
        self.labels: list[list[str]] = []
        for words, rows in _sentences(Path(self.data_file)):
            verbs = [row[0] for row in rows if row[0] != "-"]
            columns = list(zip(*rows, strict=True))[1:]
            for verb, column in zip(verbs, columns, strict=False):
                self.sentences.append(words)
                self.predicates.append(verb)
                self.labels.append(_unfold(column))

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        words, roles = self.sentences[idx], self.labels[idx]
        verb, length = roles.index("B-V"), len(words)
        near = [_word_at(words, verb + step) for step in _NEIGHBOURS]
        mark = [int(abs(place - verb) <= 2) for place in range(length)]
        numbers = [self.word_dict.get(word, _UNKNOWN) for word in words]
        repeated = [[self.word_dict.get(word, _UNKNOWN)] * length for word in near]
        predicate = [self.predicate_dict[self.predicates[idx]]] * length
        columns = [numbers, *repeated, predicate, mark, [self.label_dict[role] for role in roles]]
        return tuple(np.array(column) for column in columns)

    def __len__(self) -> int:
        return len(self.sentences)

    def get_dict(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Numbers of the words, of the predicates and of the roles."""
        return self.word_dict, self.predicate_dict, self.label_dict

    def get_embedding(self) -> str:
        """The path of the file of vectors."""
        return self.emb_file


def _locate(given: str | None, name: str, argument: str) -> str:
    return str(find_file(given, "Conll05st", _FOLDER, name, argument))


def _lines(path: str) -> list[str]:
    return [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines()]


def _numbered_roles(lines: Iterable[str]) -> dict[str, int]:
    roles = sorted({line[2:] for line in lines if line.startswith(("B-", "I-"))})
    marks = [f"{mark}-{role}" for role in roles for mark in "BI"]
    return {mark: i for i, mark in enumerate([*marks, "O"])}


def _word_at(words: list[str], place: int) -> str:
    if place < 0:
        return "bos"
    return words[place] if place < len(words) else "eos"


def _unpack(name: str, content: bytes) -> list[str]:
    with report_damage(name), gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        text = file.read(LIMIT + 1)
    if len(text) > LIMIT:
        raise ValueError(f"Conll05st: {name} would have more than {LIMIT} bytes")
    return text.decode().splitlines()


def _sentences(path: Path) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Words of each sentence, and for each of them its row of the table of predicates and roles."""
    parts = {name.split("/")[2]: _unpack(name, content) for name, content in contents(path, _MEMBER)}
    if parts.keys() != {"words", "props"}:
        raise ValueError(f"Conll05st: {path} holds no words and props under conll05st-release/test.wsj/")
    words: list[str] = []
    rows: list[list[str]] = []
    # The files end with an empty line; one more does no harm where they do not.
    for word, row in zip([*parts["words"], ""], [*parts["props"], ""], strict=True):
        if row.split():
            words.append(word.strip())
            rows.append(row.split())
        elif rows:
            yield words, rows
            words, rows = [], []


def _unfold(column: Iterable[str]) -> list[str]:
    """Roles word for word of a column of brackets: ``(A0*``, ``*``, ``*)`` are ``B-A0``, ``I-A0``, ``I-A0``."""
    roles: list[str] = []
    role, inside = "O", False
    for cell in column:
        if cell == "*":
            roles.append(f"I-{role}" if inside else "O")
        elif cell == "*)":
            roles.append(f"I-{role}")
            inside = False
        elif "(" in cell and "*" in cell:
            role, inside = cell[1 : cell.find("*")], ")" not in cell
            roles.append(f"B-{role}")
        else:
            raise ValueError(f"Conll05st: a role should be written '(A0*', '*' or '*)', got {cell!r:.40}")
    return roles

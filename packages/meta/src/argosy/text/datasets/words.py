"""Words of members of archives, and their numbers."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import Pattern

from argosy.vision.datasets.files import LIMIT, report_damage

__all__ = ["contents", "word_indices"]

Word = bytes | str


def contents(path: Path, wanted: Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the members of a tar file whose whole name is ``wanted``, in the archive's order.

    Raises ValueError for a damaged archive, and for members that are larger than ``LIMIT`` once they are unpacked.
    """
    with report_damage(path), tarfile.open(path) as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if not member.isfile() or wanted.fullmatch(name) is None:
                continue
            if member.size > LIMIT:
                raise ValueError(f"{path}: {name} would have {member.size} bytes, more than {LIMIT}")
            file = archive.extractfile(member)
            yield name, b"" if file is None else file.read()


def word_indices(counts: Counter[Word], cutoff: int) -> dict[Word, int]:
    """Numbers of the words that occur more than ``cutoff`` times, the most frequent first; ``"<unk>"`` is the last."""
    kept: Iterable[Word] = [word for word, count in counts.items() if count > cutoff]
    order = sorted(kept, key=lambda word: (-counts[word], word if isinstance(word, bytes) else word.encode()))
    numbers: dict[Word, int] = {word: i for i, word in enumerate(order)}
    numbers["<unk>"] = len(order)
    return numbers

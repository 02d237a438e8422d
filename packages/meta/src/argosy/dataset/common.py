"""Files of data sets: their folder and their sums."""

import hashlib
from pathlib import Path

__all__ = ["DATA_HOME", "md5file"]

DATA_HOME = str(Path("~/.cache/paddle/dataset").expanduser())
"""Paddle's folder for data sets."""


def md5file(fname: str) -> str:
    """The MD5 sum of a file, in hexadecimal digits. Raises OSError where it cannot be read."""
    with Path(fname).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()

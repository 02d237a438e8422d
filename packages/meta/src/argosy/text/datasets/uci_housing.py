"""Prices of houses around Boston (Harrison and Rubinfeld, 1978), from ``housing.data``."""

from __future__ import annotations

import numpy as np

from argosy.framework.default_dtype import get_default_dtype
from argosy.io.dataset import Dataset
from argosy.vision.datasets.files import find_file, mode_of

__all__ = ["UCIHousing"]

_COLUMNS = 14


class UCIHousing(Dataset):
    """Pairs of 13 features and the price ``[1]``, of the default dtype.

    data_file: the table of 14 columns as it is published; mode: "train" (the first four fifths) or "test"; download:
    taken as Paddle takes it, though nothing is. Features are centred and divided by their range over both parts. Raises
    FileNotFoundError where the file is not there, ValueError where it is no such table.
    """

    def __init__(self, data_file: str | None = None, mode: str = "train", download: bool = True) -> None:
        self.mode = mode_of("UCIHousing", mode, ("train", "test"))
        self.data_file = str(find_file(data_file, "UCIHousing", "uci_housing", "housing.data", "data_file"))
        table = _read(self.data_file)
        low, high, mean = table.min(0), table.max(0), table.sum(0) / len(table)
        table[:, :-1] = (table[:, :-1] - mean[:-1]) / (high[:-1] - low[:-1])
        cut = int(len(table) * 0.8)
        self.data = table[:cut] if self.mode == "train" else table[cut:]
        self.dtype = get_default_dtype()

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        row = self.data[idx].astype(self.dtype)
        return row[:-1], row[-1:]

    def __len__(self) -> int:
        return len(self.data)


def _read(path: str) -> np.ndarray:
    with open(path, encoding="ascii", errors="replace") as file:
        numbers = file.read().split()
    try:
        table = np.array(numbers, np.float64).reshape(-1, _COLUMNS)
    except ValueError:
        table = np.empty((0, _COLUMNS))
    if not len(table):
        raise ValueError(f"UCIHousing: {path} should be a table of {_COLUMNS} columns of numbers")
    return table

"""Images a second out of a DataLoader with two worker processes: crop, flip, normalise, batches of 64 x 3 x 112 x 112.

The pictures are made from their number (uint8, 128 x 128), so that no disk is measured; augmentation is numpy, the same
in both frameworks. A step takes every batch of one pass over 2,048 pictures and sums its labels. In the case
``workers`` the worker processes stay; in ``in-process`` there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

PICTURES, BATCH, SIDE, CROP, WORKERS = 2048, 64, 128, 112, 2
MEAN, DEVIATION = np.float32([123.7, 116.3, 103.5]), np.float32([58.4, 57.1, 57.4])
STORE = np.random.default_rng(0).integers(0, 256, (64, SIDE, SIDE, 3), np.uint8)


def picture(index: int) -> tuple[np.ndarray, np.int64]:
    """The augmented picture [3, 112, 112] float32 and its label."""
    rng = np.random.default_rng(index)
    top, left = rng.integers(0, SIDE - CROP + 1, 2)
    part = STORE[index % len(STORE), top : top + CROP, left : left + CROP]
    if rng.random() < 0.5:
        part = part[:, ::-1]
    return np.ascontiguousarray(((part - MEAN) / DEVIATION).transpose(2, 0, 1)), np.int64(index % 10)


def argosy_step(workers: int) -> Callable[[], Any]:
    from argosy.io import DataLoader, Dataset

    class Pictures(Dataset):  # type: ignore[misc]
        def __getitem__(self, index: int) -> Any:
            return picture(index)

        def __len__(self) -> int:
            return PICTURES

    loader = DataLoader(Pictures(), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)

    def step() -> float:
        return float(sum(int(labels.sum()) for _, labels in loader))

    return step


def torch_step(workers: int) -> Callable[[], Any]:
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):  # type: ignore[misc, type-arg]
        def __getitem__(self, index: int) -> Any:
            return picture(index)

        def __len__(self) -> int:
            return PICTURES

    loader = DataLoader(Pictures(), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)

    def step() -> float:
        return float(sum(int(labels.sum()) for _, labels in loader))

    return step


def main() -> None:
    options = arguments(__doc__ or "", ("argosy", "torch"), ("workers", "in-process"))
    workers = WORKERS if options.case == "workers" else 0
    step = argosy_step(workers) if options.framework == "argosy" else torch_step(workers)
    run(options, "dataloader", step)


if __name__ == "__main__":
    main()

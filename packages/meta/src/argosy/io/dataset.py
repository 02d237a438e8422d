"""Data sets: samples by index, or as a stream."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from argosy.argument_checks import validate_call
from argosy.argument_repr import ArgumentRepr
from argosy.io.sampler import permutation

__all__ = [
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset(ArgumentRepr):
    """Samples by index: subclasses define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__()")


def _as_list(title: str, datasets: Any) -> list[Any]:
    """The data sets of another one. Raises TypeError for anything else, ValueError for none."""
    if not hasattr(type(datasets), "__iter__"):
        raise TypeError(f"{title}(): argument 'datasets' must be a sequence of data sets, got {datasets!r:.60}")
    found = list(datasets)
    for dataset in found:
        if not hasattr(type(dataset), "__getitem__") and not hasattr(type(dataset), "__iter__"):
            raise TypeError(f"{title}(): argument 'datasets' must hold data sets, got {dataset!r:.60}")
    if not found:
        raise ValueError(f"{title}(): argument 'datasets' must hold at least one data set, got {datasets!r:.60}")
    return found


class IterableDataset(Dataset):
    """Samples as a stream: subclasses define ``__iter__``. In a worker, ``get_worker_info()`` tells which part is
    its.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")

    def __getitem__(self, idx: int) -> Any:
        raise RuntimeError(f"{type(self).__name__} is an IterableDataset: it has no samples by index")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} is an IterableDataset: it has no length")


class TensorDataset(Dataset):
    """Rows of tensors of equal length; a sample is a tuple with one row of each."""

    @validate_call
    def __init__(self, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            if not hasattr(type(tensor), "__len__"):
                raise TypeError(f"TensorDataset(): argument 'tensors' must hold tensors or arrays, got {tensor!r:.60}")
        lengths = [len(t) for t in tensors]
        if not lengths or len(set(lengths)) != 1:
            raise ValueError(f"TensorDataset takes tensors of one length, got lengths {lengths}")
        self.tensors = list(tensors)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ComposeDataset(Dataset):
    """Data sets of one length side by side: a sample is the concatenation of theirs."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = _as_list("ComposeDataset", datasets)
        lengths = [len(dataset) for dataset in self.datasets]
        if len(set(lengths)) > 1:
            raise ValueError(f"ComposeDataset: argument 'datasets' should be of one length, got lengths {lengths}")

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        parts: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[idx]
            parts.extend(sample if isinstance(sample, (list, tuple)) else [sample])
        return tuple(parts)

    def __len__(self) -> int:
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """Data sets one after another."""

    @validate_call
    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = _as_list("ConcatDataset", datasets)
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Sequence[Any]) -> list[int]:
        """The sums of the first lengths: ``[2, 5]`` for data sets of 2 and 3 samples."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        at = idx + len(self) if idx < 0 else idx
        if not 0 <= at < len(self):
            raise IndexError(f"ConcatDataset of {len(self)} samples has no sample {idx}")
        which = bisect.bisect_right(self.cumulative_sizes, at)
        return self.datasets[which][at - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Streams one after another."""

    def __init__(self, datasets: Sequence[IterableDataset]) -> None:
        self.datasets = _as_list("ChainDataset", datasets)
        for one in self.datasets:
            if not isinstance(one, IterableDataset):  # what only has __getitem__ may have no end
                raise TypeError(f"ChainDataset(): argument 'datasets' must hold IterableDatasets, got {one!r:.60}")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class Subset(Dataset):
    """The samples of ``dataset`` at ``indices``."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        if not hasattr(type(indices), "__len__") or not hasattr(type(indices), "__getitem__"):
            raise TypeError(f"Subset(): argument 'indices' must be a sequence of integers, got {indices!r:.60}")
        self.dataset = dataset
        self.indices = indices

    @validate_call
    def __getitem__(self, idx: int) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


@validate_call
def random_split(dataset: Dataset, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Disjoint random subsets of the given lengths, or of the given fractions, which must sum to 1.

    generator: a seed, a ``numpy.random.Generator``, or None for the framework's own. Raises ValueError when the
    lengths do not sum to the data set's.
    """
    total = len(dataset)
    sizes = _sizes(lengths, total)
    if sum(sizes) != total:
        raise ValueError(f"random_split: the lengths sum to {sum(sizes)}, the data set has {total} samples")
    order = permutation(total, generator)
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _sizes(lengths: Sequence[float], total: int) -> list[int]:
    if not math.isclose(sum(lengths), 1) or sum(lengths) > 1 + 1e-9 or total == 1:
        return [int(n) for n in lengths]
    sizes = [math.floor(total * fraction) for fraction in lengths]
    for i in range(total - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes

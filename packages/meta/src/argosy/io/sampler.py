"""In which order samples are visited."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np

from argosy.argument_checks import CheckedConstructor
from argosy_phi_ops.context import context

__all__ = [
    "BatchSampler",
    "DistributedBatchSampler",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "permutation",
]


def generator_of(given: Any) -> np.random.Generator:
    """A numpy generator: the one given, one of the seed given, or one seeded by the next draw of the framework's."""
    if isinstance(given, np.random.Generator):
        return given
    if given is None:
        return np.random.default_rng(context().generator.draw())
    seed = given if isinstance(given, int) else list(given.draw())
    return np.random.default_rng(seed)


def permutation(count: int, generator: Any = None) -> list[int]:
    """A random order of ``count`` indices."""
    order: list[int] = generator_of(generator).permutation(count).tolist()
    return order


def choices(
    given: Any, total: int, count: int, replacement: bool, weights: Any = None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """``count`` of ``total`` indices, drawn as Paddle draws them: by ``numpy.random`` unless a generator is given.

    Where there are several ranks, and none is given, by the framework's generator: ranks of one seed then visit their
    samples in one order, also as threads of one process.
    """
    if given is None and context().size == 1:
        return np.random.choice(total, count, replacement, weights)
    return generator_of(given).choice(total, count, replacement, weights)


def base_seed() -> int:
    """What the seeds of a loader's workers are counted from, drawn as :func:`choices` draws."""
    if context().size == 1:
        return int(np.random.randint(0, sys.maxsize))
    high, low = context().generator.draw()
    return (high * 1_000_003 + low) % sys.maxsize


class Sampler(CheckedConstructor):
    """An iterable of indices; subclasses define ``__iter__`` and ``__len__``."""

    def __init__(self, data_source: Sized | None = None) -> None:
        if data_source is not None and not hasattr(type(data_source), "__len__"):
            kind = type(self).__name__
            raise TypeError(f"{kind}(): argument 'data_source' must have a length, got {data_source!r:.80}")
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")

    def __len__(self) -> int:
        return len(self.data_source) if self.data_source is not None else 0


class SequenceSampler(Sampler):
    """The indices in order."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


class RandomSampler(Sampler):
    """The indices in random order; with ``replacement``, ``num_samples`` draws.

    generator: a seed, a ``numpy.random.Generator``, an iterator that gives the indices itself, or None:
    ``numpy.random``, as in Paddle, so that ``numpy.random.seed`` fixes the order.
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        super().__init__(data_source)
        if num_samples is not None and num_samples <= 0:
            raise ValueError(f"RandomSampler: num_samples must be positive, got {num_samples}")
        self.replacement = replacement
        self.generator = generator
        self._count = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        return len(self.data_source) if self._count is None else self._count  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[int]:
        total = len(self.data_source)  # type: ignore[arg-type]
        if isinstance(self.generator, Iterator):
            return islice(self.generator, self.num_samples)
        drawn = choices(self.generator, total, self.num_samples, self.replacement)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int]) -> None:
        super().__init__(indices)
        self.indices = list(indices)

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in permutation(len(self.indices))])


class WeightedRandomSampler(Sampler):
    """``num_samples`` indices, each with probability proportional to its weight."""

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True) -> None:
        super().__init__(weights)
        w = np.asarray(weights, np.float64)
        if w.ndim != 1 or (w < 0).any() or not w.sum() > 0:
            raise ValueError("WeightedRandomSampler: weights must be one row of non-negative numbers, not all zero")
        if num_samples < 0:
            raise ValueError(f"WeightedRandomSampler(): argument 'num_samples' must not be negative, got {num_samples}")
        if not replacement and num_samples > (w > 0).sum():
            raise ValueError(f"WeightedRandomSampler: cannot draw {num_samples} without replacement from {len(w)}")
        self.weights, self.num_samples, self.replacement = w / w.sum(), num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        drawn = choices(None, len(self.weights), self.num_samples, self.replacement, self.weights)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices, in order, shuffled, or from a ``sampler``; the last may be shorter."""

    def __init__(
        self,
        dataset: Sized | None = None,
        sampler: Any = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler takes either a dataset or a sampler")
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"BatchSampler: batch_size must be a positive integer, got {batch_size!r}")
        if sampler is None:
            assert dataset is not None
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:  # type: ignore[override]
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedBatchSampler(BatchSampler):
    """The share of rank ``rank`` of ``num_replicas``; every rank gets equally many, the end is filled from the
    start.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, None, shuffle, batch_size, drop_last)
        ambient = context()
        self.dataset, self.shuffle = dataset, shuffle
        self.nranks = ambient.size if num_replicas is None else num_replicas
        self.local_rank = ambient.rank if rank is None else rank
        if not 0 <= self.local_rank < self.nranks:
            raise ValueError(f"DistributedBatchSampler: rank {self.local_rank} is not in [0, {self.nranks})")
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)

    def set_epoch(self, epoch: int) -> None:
        """The shuffling seed, equal on all ranks."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:  # type: ignore[override]
        count = len(self.dataset)
        total = self.num_samples * self.nranks
        filled = (list(range(count)) * math.ceil(total / count))[:total] if count else []
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(filled)  # Paddle's order: so the same batches in each epoch
        self.sampler = self._share(filled)
        self.epoch += self.shuffle
        return super().__iter__()

    def _share(self, filled: list[int]) -> list[int]:
        """This rank's part: every ``nranks``-th batch of neighbours, and of what is left an equal run."""
        rest = len(filled) % (self.batch_size * self.nranks)
        even, size = len(filled) - rest, self.batch_size
        starts = range(self.local_rank * size, even, size * self.nranks)
        own = rest // self.nranks
        last = even + own * self.local_rank
        return [i for s in starts for i in filled[s : s + size]] + filled[last : last + own]

    def __len__(self) -> int:
        count = self.num_samples
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

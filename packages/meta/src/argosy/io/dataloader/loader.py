"""``DataLoader``: batches of a data set, made here or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from argosy.argument_checks import validate_call
from argosy.argument_repr import ArgumentRepr
from argosy.io.dataloader.collate import as_tensors, collate_arrays, default_convert_fn
from argosy.io.dataloader.pool import WorkerPool
from argosy.io.dataloader.worker import Recipe
from argosy.io.dataset import Dataset, IterableDataset
from argosy.io.sampler import BatchSampler, SequenceSampler, base_seed
from argosy.static.session import in_static_mode
from argosy_hwadapt import DeviceNotFound
from argosy_tensorcore.place import Place, as_place
from argosy_tensorcore.tensor import Tensor

__all__ = ["DataLoader"]


class _Batches(Iterator[Any]):
    """The batches of one epoch. Their number is that of the whole epoch, as Paddle's iterators say it."""

    __slots__ = ("_batches", "_loader")

    def __init__(self, loader: DataLoader, batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)

    def close(self) -> None:
        """End the epoch: workers stop, unless they stay for the next one."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class DataLoader(ArgumentRepr):
    """An iterable of batches, as lists of tensors.

    dataset: indexable or an IterableDataset; batch_size None gives single samples without a batch axis; num_workers: 0
    makes batches here, more in that many processes, in the same order; collate_fn: from a list of samples to a batch;
    timeout: seconds to wait for a worker (0: forever); worker_init_fn(id) runs first in each worker; prefetch_factor:
    batches under way per worker; persistent_workers keeps them from epoch to epoch; return_list False: for the executor
    of a static program, lists of one dict by the names of the variables ``feed_list`` (without them lists as ever);
    places: the place of batches, alone or in a list, by default the host; ValueError for anything else.
    """

    @validate_call
    def __init__(
        self,
        dataset: Dataset | Iterable[Any],
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[Any], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if num_workers < 0 or prefetch_factor < 1 or timeout < 0:
            raise ValueError(
                "DataLoader: num_workers and timeout must not be negative and prefetch_factor at least 1; "
                f"got {num_workers}, {timeout}, {prefetch_factor}"
            )
        if not hasattr(type(dataset), "__getitem__") and not hasattr(type(dataset), "__iter__"):
            raise TypeError(f"DataLoader(): argument 'dataset' must be a Dataset, got {dataset!r:.80}")
        for argument, given in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
            if given is not None and not callable(given):
                raise TypeError(f"DataLoader(): argument {argument!r} must be a function, got {given!r:.80}")
        if batch_sampler is not None and not hasattr(type(batch_sampler), "__iter__"):
            raise TypeError(f"DataLoader(): argument 'batch_sampler' must be an iterable, got {batch_sampler!r:.80}")
        if not return_list and not feed_list and in_static_mode():
            raise ValueError("DataLoader(return_list=False) gives dicts by the names of feed_list, which is missing")
        self._names = None if return_list or not feed_list else [x.name for x in feed_list]
        self.dataset: Any = dataset
        self.feed_list, self.return_list = feed_list, return_list
        self.use_buffer_reader, self.auto_collate_batch = use_buffer_reader, batch_size is not None
        self.places = [_place_of_batches(places)]
        self.batch_size, self.drop_last = batch_size, drop_last
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.use_shared_memory, self.timeout = use_shared_memory, timeout
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self._stream = isinstance(dataset, IterableDataset)
        self.batch_sampler = self._make_sampler(batch_sampler, shuffle)
        self.collate_fn = collate_fn
        self._pool: WorkerPool | None = None

    def _make_sampler(self, given: Any, shuffle: bool) -> Any:
        if self._stream:
            if given is not None or shuffle:
                raise ValueError("DataLoader: a stream is read in its own order; drop shuffle and batch_sampler")
            return None
        if given is not None:
            return given
        if self.batch_size is None:
            return SequenceSampler(self.dataset)
        return BatchSampler(self.dataset, None, shuffle, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        """Batches of one epoch. Raises TypeError for streams."""
        if self.batch_sampler is None:
            raise TypeError("a DataLoader of an IterableDataset has no length")
        return len(self.batch_sampler)

    def __call__(self) -> Iterator[Any]:
        """``iter(loader)``, as older programs write it."""
        return iter(self)

    @validate_call
    def __iter__(self) -> Iterator[Any]:
        batches = self._iterate_workers() if self.num_workers else self._iterate_in_process()
        if not self.places[0].is_cpu_place():
            batches = self._on_device(batches)
        return _Batches(self, batches if self._names is None else map(self._by_name, batches))

    def _on_device(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                yield self._bring(batch)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def _bring(self, batch: Any) -> Any:
        """A batch with its tensors on the device."""
        if isinstance(batch, Tensor):
            return batch.to(self.places[0])
        if isinstance(batch, dict):
            return {name: self._bring(part) for name, part in batch.items()}
        return type(batch)(map(self._bring, batch)) if type(batch) in (list, tuple) else batch

    def _by_name(self, batch: Any) -> list[dict[str, Any]]:
        assert self._names is not None
        return [dict(zip(self._names, batch, strict=True))]

    def _recipe(self) -> Recipe:
        collate: Callable[[Any], Any]
        if self.collate_fn is not None:
            collate = self.collate_fn
        else:
            collate = default_convert_fn if self.batch_size is None and not self._given_batches() else collate_arrays
        return Recipe(self.dataset, collate, self._stream, self.batch_size, self.drop_last)

    def _given_batches(self) -> bool:
        return self.batch_sampler is not None and not isinstance(self.batch_sampler, SequenceSampler)

    def _iterate_in_process(self) -> Iterator[Any]:
        recipe = self._recipe()
        batches = recipe.batches() if self._stream else map(recipe.fetch, self.batch_sampler)
        return map(as_tensors, batches)

    def _iterate_workers(self) -> Iterator[Any]:
        pool = self._take_pool()
        batches = pool.run_streams() if self._stream else pool.run(iter(self.batch_sampler))
        try:
            for batch in batches:
                yield as_tensors(batch)
        finally:
            if not self.persistent_workers:
                pool.stop()

    def _take_pool(self) -> WorkerPool:
        if self._pool is not None and self._pool.alive:
            return self._pool
        pool = WorkerPool(
            self._recipe(),
            self.num_workers,
            base_seed(),
            self.worker_init_fn,
            self.use_shared_memory,
            self.timeout,
            self.prefetch_factor,
        )
        if self.persistent_workers:
            self._pool = pool
        return pool


def _place_of_batches(places: Any) -> Place:
    given = places if isinstance(places, (list, tuple)) else [places or "cpu"]
    try:
        found = [as_place(place) for place in given] or [as_place("cpu")]
        found[0].device()
    except (TypeError, ValueError, DeviceNotFound) as error:
        raise ValueError(
            f"DataLoader(): argument 'places' must hold places such as 'cpu', got {places!r:.60}"
        ) from error
    if len(set(found)) > 1:
        raise ValueError(f"DataLoader(): argument 'places': batches go to one place, not to {places!r:.60}")
    return found[0]

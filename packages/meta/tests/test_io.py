"""Loaders: order, workers, failures and clean ends."""

import os
import random
import signal
import time

import numpy as np
import pytest

import argosy as paddle
from argosy.distributed.debug import run_ranks
from argosy.io import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedBatchSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from argosy.io.dataloader.pool import WorkerError
from argosy.io.sampler import base_seed


class Squares(Dataset):
    def __init__(self, n=20, width=4):
        self.n, self.width = n, width

    def __getitem__(self, i):
        return np.full(self.width, i * i, np.float32), i

    def __len__(self):
        return self.n


class Failing(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("sample five is rotten")
        return super().__getitem__(i)


class Dying(Squares):
    def __getitem__(self, i):
        if i == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(np.arange(first, 10, step).astype(np.int64))


def _labels(loader):
    return [batch[1].numpy().tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("width", [4, 40_000])
def test_batches_come_in_order_whatever_the_workers(workers, width):
    """Batches, small ones by pipe and big ones by shared memory, are those of the data set in its order."""
    loader = DataLoader(Squares(10, width), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert [b[1].numpy().tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(batches[0][0].shape) == [4, width]
    assert batches[0][0].dtype is paddle.float32
    assert batches[0][0].stop_gradient
    np.testing.assert_array_equal(batches[2][0].numpy()[:, -1], [64, 81])
    assert len(loader) == 3


def test_shuffling_repeats_with_the_seed_and_visits_everything():
    """numpy's seed fixes the order, as in Paddle; another epoch has another order."""

    def orders(workers):
        np.random.seed(7)
        loader = DataLoader(Squares(), batch_size=5, shuffle=True, num_workers=workers, persistent_workers=True)
        return _labels(loader)

    first = orders(0)
    assert sorted(x for batch in first for x in batch) == list(range(20))
    assert first == orders(0) != sorted(first)


class Drawing(Squares):
    def __getitem__(self, i):
        return np.int64(i), np.array([np.random.randint(0, 10**6), random.randint(0, 10**6)])


@pytest.mark.parametrize(
    ("workers", "orders", "drawn"),
    [
        (0, [[[5, 4, 1, 2], [9, 6, 7, 0], [3, 8, 10]], [[9, 0, 5, 7], [3, 1, 4, 8], [2, 6, 10]]], [8896, 567252]),
        (2, [[[6, 4, 1, 2], [10, 5, 7, 0], [8, 3, 9]], [[3, 10, 7, 1], [2, 9, 5, 8], [4, 0, 6]]], [255633, 677004]),
    ],
)
def test_orders_and_draws_of_a_seed_are_paddles(workers, orders, drawn):
    """What Paddle 3.3.1 gives for these seeds: two epochs' orders, and what samples of a third one draw."""
    np.random.seed(3)
    random.seed(3)
    loader = DataLoader(Drawing(11), batch_size=4, shuffle=True, num_workers=workers)
    for order in orders:
        assert [batch[0].numpy().tolist() for batch in loader] == order
        np.random.randint(0, 100)
    if workers:
        assert next(iter(loader))[1].numpy()[0].tolist() == drawn


def test_samplers_draw_as_paddles_do():
    """Orders of numpy's seed 4, recorded from Paddle 3.3.1; a generator of indices is taken as it is."""
    np.random.seed(4)
    assert list(RandomSampler(range(9), replacement=True, num_samples=5)) == [7, 5, 1, 8, 7]
    assert list(RandomSampler(range(9), num_samples=5)) == [5, 0, 6, 3, 4]
    assert list(WeightedRandomSampler([0.1, 0.4, 0.3], 6)) == [2, 2, 2, 0, 1, 1]
    assert list(WeightedRandomSampler([0.1, 0.4, 0.3], 2, False)) == [1, 2]
    assert list(RandomSampler(range(9), generator=iter([5, 4, 3]))) == [5, 4, 3]
    assert list(RandomSampler(range(5), generator=3)) == list(RandomSampler(range(5), generator=3))


def test_ranks_of_one_seed_visit_samples_in_one_order():
    """Ranks, threads of one process here, draw from generators of their own."""

    def order():
        paddle.seed(5)
        return list(RandomSampler(range(50))), base_seed()

    first, second = run_ranks(order, 2)
    assert first == second
    assert sorted(first[0]) == list(range(50))


def test_a_workers_exception_is_shown_with_its_traceback():
    """What the data set raised reaches the caller with the line that raised it."""
    loader = DataLoader(Failing(), batch_size=4, num_workers=2)
    with pytest.raises(WorkerError, match=r"worker 1 failed(.|\n)*__getitem__(.|\n)*sample five is rotten"):
        list(loader)


def test_a_killed_worker_is_noticed():
    """A worker that is killed ends the epoch with an error instead of waiting for ever."""
    with pytest.raises(WorkerError, match="died with exit code -9"):
        list(DataLoader(Dying(), batch_size=2, num_workers=2))


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(3600)
        return super().__getitem__(i)


def test_timeout_is_kept():
    """A worker that takes longer than the timeout is an error, at once: it is not waited for until it has slept out."""
    with pytest.raises(WorkerError, match=r"within 0\.2 seconds"):
        next(iter(DataLoader(Slow(), num_workers=1, timeout=0.2)))
    with pytest.raises(WorkerError, match=r"within 0\.2 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.2))


def test_outside_of_static_programs_batches_are_lists():
    """return_list=False is for executors; programs that say it anyway go on, as in Paddle."""
    (first,) = DataLoader(Squares(), batch_sampler=[[]], return_list=False, collate_fn=lambda batch: [1])
    assert first == [1]


def test_data_sets_side_by_side_are_of_one_length():
    with pytest.raises(ValueError, match=r"one length, got lengths \[2, 3\]"):
        paddle.io.ComposeDataset([Squares(2), Squares(3)])


def test_leaving_an_epoch_early_ends_the_workers():
    """Breaking out of the loop stops the processes."""
    loader = DataLoader(Squares(), batch_size=1, num_workers=2)
    batches = iter(loader)
    next(batches)
    pool = batches._batches.gi_frame.f_locals["pool"]
    processes = [w.process for w in pool.workers]
    batches.close()
    assert not any(p.is_alive() for p in processes)


def test_persistent_workers_serve_every_epoch_even_after_a_break():
    """The same processes serve the next epoch, and what was left over is not delivered again."""
    loader = DataLoader(Squares(8), batch_size=2, num_workers=2, persistent_workers=True)
    next(iter(loader))
    pids = [w.process.pid for w in loader._pool.workers]
    assert _labels(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [w.process.pid for w in loader._pool.workers] == pids
    loader._pool.stop()


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_are_split_by_worker_info(workers):
    """An IterableDataset is read by every worker; each takes its part; nothing is lost."""
    loader = DataLoader(Stream(), batch_size=3, num_workers=workers)
    seen = [batch.numpy().tolist() for batch in loader]
    assert sorted(x for batch in seen for x in batch) == list(range(10))
    if workers:
        assert seen[:2] == [[0, 2, 4], [1, 3, 5]]


def _announce(worker):
    np.random.seed(worker)


def test_worker_init_and_info():
    """worker_init_fn runs with the worker's number; outside of workers there is no info."""
    assert get_worker_info() is None
    assert len(list(DataLoader(Squares(4), num_workers=2, worker_init_fn=_announce))) == 4


def test_nested_samples_keep_their_shape():
    """Dicts, tuples, strings and numbers collate by structure; no batch size converts single samples."""

    class Nested(Squares):
        def __getitem__(self, i):
            return {"x": (np.ones(2), 1.5), "name": str(i)}

    batch = next(iter(DataLoader(Nested(), batch_size=2)))
    assert list(batch["x"][0].shape) == [2, 2]
    assert batch["x"][1].dtype is paddle.float64  # Python's floats, as in Paddle
    assert batch["name"] == ["0", "1"]
    single = next(iter(DataLoader(Squares(), batch_size=None)))
    assert list(single[0].shape) == [4]


def test_ragged_samples_say_what_differs():
    """Samples of different shapes are an error that names the shapes."""

    class Ragged(Squares):
        def __getitem__(self, i):
            return np.zeros(i + 1)

    with pytest.raises(ValueError, match="differ in shape"):
        next(iter(DataLoader(Ragged(), batch_size=2)))


def test_datasets_and_samplers():
    """Subset, ConcatDataset, random_split and the samplers pick what they say."""
    data = TensorDataset([paddle.to_tensor(np.arange(6)), paddle.to_tensor(np.arange(6) * 2)])
    assert [int(x) for x in data[4]] == [4, 8]
    both = ConcatDataset([Subset(data, [0, 1]), data])
    assert len(both) == 8
    assert int(both[-1][0]) == 5
    parts = random_split(data, [0.5, 0.5])
    assert sorted(parts[0].indices + parts[1].indices) == list(range(6))
    with pytest.raises(ValueError, match="sum to 5"):
        random_split(data, [2, 3])
    assert [len(b) for b in BatchSampler(data, batch_size=4, drop_last=True)] == [4]
    assert len(list(RandomSampler(data, replacement=True, num_samples=9))) == 9
    assert set(WeightedRandomSampler([0, 1, 0], 5)) == {1}
    shares = [list(DistributedBatchSampler(data, 2, num_replicas=4, rank=r)) for r in range(4)]
    assert shares == [[[0, 1]], [[2, 3]], [[4, 5]], [[0, 1]]]


def test_batches_of_ranks_are_shuffled_in_paddles_order():
    """What the wheel (3.3.1) gives for eleven samples on three ranks in epochs 3 and 4."""
    epochs = []
    for rank in range(3):
        sampler = DistributedBatchSampler(range(11), 2, num_replicas=3, rank=rank, shuffle=True)
        sampler.set_epoch(3)
        epochs.append([list(sampler), list(sampler)])
    assert epochs == [
        [[[5, 4], [7, 0]], [[3, 4], [0, 0]]],
        [[[1, 2], [3, 9]], [[6, 9], [1, 5]]],
        [[[0, 6], [8, 10]], [[8, 2], [7, 10]]],
    ]


@pytest.mark.parametrize("places", ["gpu:0", "nowhere", 3, ["gpu:0"], [paddle.CPUPlace(), 3]])
def test_batches_go_to_the_host_only(places):
    with pytest.raises(ValueError, match="argument 'places'"):
        DataLoader(TensorDataset([paddle.ones([4, 2])]), places=places)


@pytest.mark.parametrize("places", ["cpu", ["cpu"], paddle.CPUPlace(), [paddle.CPUPlace()]])
def test_the_host_may_be_named(places):
    assert len(list(DataLoader(TensorDataset([paddle.ones([4, 2])]), places=places, batch_size=2))) == 2


class Strange(Dataset):
    """Large samples that lie in memory as they should not, of types that numpy does not know itself or mixes."""

    def __getitem__(self, i):
        ramp = np.arange(120_000).reshape(300, 400) + i
        half = paddle.to_tensor(ramp % 7).astype("bfloat16")
        mixed = ramp.astype("float32" if i % 2 else "float64")
        return ramp.T, half, mixed, np.zeros((0, 3)), ramp[::-1, ::2] > 5

    def __len__(self):
        return 4


@pytest.mark.parametrize("share", [True, False])
def test_large_samples_of_any_layout_arrive_as_they_were(share):
    """A worker's batch is the one that is made here: bytes, types and shapes."""
    here = DataLoader(Strange(), batch_size=2)
    there = DataLoader(Strange(), batch_size=2, num_workers=2, use_shared_memory=share)
    for mine, theirs in zip(here, there, strict=True):
        assert [x.dtype for x in mine] == [x.dtype for x in theirs]
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.astype("float64").numpy(), other.astype("float64").numpy())

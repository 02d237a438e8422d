"""Checks of a communicator: every rank runs them all, and knows what every other rank gives.

A check gets a group of its own, since an error ends a group's use. Values are small integers, exact in every dtype.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_hwadapt.calls import Array
from argosy_hwadapt.communicator import Communicator
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError
from argosy_hwadapt.testing.device_buffers import check_device_buffers, virtual_device
from argosy_hwadapt.testing.suite import CheckSkipped, Outcome, require, require_error

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

_REDUCE: dict[str, Callable[..., Array]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
_DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64")
CHECKS: list[Callable[[Communicator], None]] = []


def check_communicator(communicator: Communicator, device: Device | None = None) -> list[Outcome]:
    """Run all checks; every rank of ``communicator`` calls this. Checks after one that failed are not run.

    Buffers of ``device``, by default of a virtual one, are given to it.
    """
    outcomes: list[Outcome] = []

    def device_buffers(comm: Communicator) -> None:
        check_device_buffers(comm, device or virtual_device())

    for check in (*CHECKS, device_buffers):
        start = time.perf_counter()
        status, detail = _run(check, communicator)
        outcomes.append(Outcome(7, check.__name__, status, detail, time.perf_counter() - start))
        if status == "failed":
            break
    return outcomes


def _run(check: Callable[[Communicator], None], communicator: Communicator) -> tuple[str, str]:
    try:
        group = communicator.split(0, communicator.rank)
        require(group is not None, "split gives no group to a rank with a colour")
        check(group)  # type: ignore[arg-type]
    except CheckSkipped as reason:
        return "skipped", str(reason)
    except Exception as error:  # noqa: BLE001 - any error is a finding, and is reported
        return "failed", f"rank {communicator.rank}: {type(error).__name__}: {error}"
    return "passed", ""


def _check(function: Callable[[Communicator], None]) -> Callable[[Communicator], None]:
    CHECKS.append(function)
    return function


def _values(rank: int, count: int, dtype: str) -> Array:
    return ((np.arange(count) + 2 * rank) % 3 + (0 if dtype == "bool" else 1)).astype(dtype)


def _everyone(size: int, count: int, dtype: str) -> Array:
    return np.stack([_values(rank, count, dtype) for rank in range(size)])


def _require_equal(found: Array, expected: Any, what: str) -> None:
    require(np.array_equal(found, np.asarray(expected).reshape(found.shape)), f"{what}: got {found}, not {expected}")


def _forms(comm: Communicator, kind: str) -> Iterator[Callable[..., None]]:
    """The plain form of an operation, and the started one with its wait."""
    yield getattr(comm, kind)
    yield lambda *args: getattr(comm, f"start_{kind}")(*args).wait()


@_check
def reductions(comm: Communicator) -> None:
    """Reductions of every dtype, plain and started, apart and in place."""
    for dtype in _DTYPES:
        whole = _everyone(comm.size, 2 * comm.size, dtype)
        for op in ("sum", "prod") if dtype == "complex64" else _REDUCE:
            expected = _REDUCE[op](whole, axis=0).astype(dtype)
            for form in _forms(comm, "all_reduce"):
                recv, own = np.zeros_like(expected), whole[comm.rank].copy()
                form(own, recv, op)
                _require_equal(recv, expected, f"all_reduce {op} of {dtype}")
                form(own, own, op)
                _require_equal(own, expected, f"all_reduce {op} of {dtype} in place")
            for form in _forms(comm, "reduce_scatter"):
                part = np.zeros(2, dtype)
                form(whole[comm.rank].copy(), part, op)
                _require_equal(part, expected.reshape(-1, 2)[comm.rank], f"reduce_scatter {op} of {dtype}")
                own = whole[comm.rank].copy()
                form(own, own[:2], op)
                _require_equal(own[:2], part, f"reduce_scatter {op} of {dtype} in place")
    mean = np.full(3, float(comm.rank))
    comm.all_reduce(mean, mean, "avg")
    _require_equal(mean, np.full(3, (comm.size - 1) / 2), "all_reduce avg")


@_check
def gathers_and_exchanges(comm: Communicator) -> None:
    """Gathers, exchanges and broadcasts of every dtype, of values, of nothing, and barriers."""
    n = comm.size
    for dtype in _DTYPES:
        for count in (2, 0):
            whole = _everyone(n, count * n, dtype)
            own = whole[comm.rank]
            for form in _forms(comm, "all_gather"):
                gathered = np.empty((n, count * n), dtype)
                form(own, gathered)
                _require_equal(gathered, whole, f"all_gather of {dtype}")
            for form in _forms(comm, "all_to_all"):
                recv = np.empty(count * n, dtype)
                form(own, recv)
                _require_equal(recv, whole.reshape(n, n, count)[:, comm.rank], f"all_to_all of {dtype}")
            for form in _forms(comm, "broadcast"):
                recv = own.copy()
                form(recv, n - 1)
                _require_equal(recv, whole[n - 1], f"broadcast of {dtype}")
    for form in _forms(comm, "barrier"):
        form()


@_check
def large_operands(comm: Communicator) -> None:
    """Fractions by the hundred thousand, which do not divide: every rank gets the bits of every form, and no rank
    those of another operation while it is still at the one before."""
    n, count = comm.size, 100_003
    for dtype in ("float32", "float16", "complex64"):
        whole = np.stack([(np.random.default_rng(rank).random(n * count) - 0.5).astype(dtype) for rank in range(n)])
        expected, own, totals = whole.sum(0), whole[comm.rank], []
        for form in _forms(comm, "all_reduce"):
            totals.append(own.copy())
            form(totals[-1], totals[-1])
        for form in _forms(comm, "reduce_scatter"):
            part = np.empty(count, dtype)
            form(own, part)
            bound = 2.0 * n * np.finfo(dtype).eps
            close = np.abs(part - expected.reshape(n, -1)[comm.rank]).max() <= bound
            require(bool(close), f"reduce_scatter of {dtype} should be within {bound}")
            close = np.abs(totals[-1] - expected).max() <= bound
            require(bool(close), f"all_reduce of {dtype} should be within {bound}")
        for form in _forms(comm, "all_gather"):
            gathered = np.empty((n, n * count), dtype)
            form(totals[-1], gathered)
            for total in totals:
                require(bool((gathered == total).all()), f"all_reduce of {dtype} should give everybody the same bits")
            form(own, gathered)
            _require_equal(gathered, whole, f"all_gather of {dtype}")


@_check
def coalesced_collectives(comm: Communicator) -> None:
    """Gathers and scattered reductions of several arrays: large, small and empty ones, of every dtype, results that
    begin where operands do."""
    n, me = comm.size, comm.rank
    for dtype in _DTYPES:
        op = "sum" if dtype == "complex64" else "max"
        wholes = [_everyone(n, n * count, dtype) for count in (3, 0, 40_001)]
        given = [whole[me].copy() for whole in wholes]
        parts = [np.empty(x.size // n, dtype) for x in given]
        comm.reduce_scatter_coalesced(given, parts, op)
        gathered = [np.empty_like(x) for x in given]
        comm.all_gather_coalesced(parts, gathered)
        for whole, found in zip(wholes, gathered, strict=True):
            _require_equal(found, _REDUCE[op](whole, axis=0).astype(dtype), f"coalesced reduction of {dtype}, gathered")
        comm.reduce_scatter_coalesced(given, [x[: x.size // n] for x in given], op)
        for x, part in zip(given, parts, strict=True):
            _require_equal(x[: part.size], part, f"coalesced reduction of {dtype} in place")
    mixed: list[Array] = [np.zeros(n), np.zeros(n, np.float32)]
    require_error(ValueError, lambda: comm.all_gather_coalesced([], []), "no operands")
    require_error(TypeError, lambda: comm.reduce_scatter_coalesced(mixed, [x[:1].copy() for x in mixed]), "two dtypes")


@_check
def uneven_exchanges(comm: Communicator) -> None:
    """Parts of counts of their own, some of them empty."""
    n, me = comm.size, comm.rank
    counts = [[(3 * source + target) % 4 for target in range(n)] for source in range(n)]
    parts = [[np.arange(counts[s][t], dtype=np.int32) + 10 * s + 100 * t for t in range(n)] for s in range(n)]
    received = [counts[source][me] for source in range(n)]
    for form in _forms(comm, "all_to_all"):
        recv = np.full(sum(received), -1, np.int32)
        form(np.concatenate(parts[me]), recv, counts[me], received)
        _require_equal(recv, np.concatenate([parts[source][me] for source in range(n)]), "uneven all_to_all")


@_check
def permutations(comm: Communicator) -> None:
    """A ring, one source of several targets, zeros elsewhere; ranks in no pair need not call."""
    n, me = comm.size, comm.rank
    own, recv = np.array([me, me + 0.5]), np.full(2, -1.0)
    for form in _forms(comm, "permute"):
        form(own, recv, [(rank, (rank + 1) % n) for rank in range(n)])
        _require_equal(recv, [(me - 1) % n, (me - 1) % n + 0.5], "permute around a ring")
        form(own, recv, [(n - 1, rank) for rank in range(0, n, 2)])
        _require_equal(recv, [n - 1, n - 0.5] if me % 2 == 0 else [0, 0], "permute from one rank to several")
    if me in (0, n - 1):
        comm.permute(own, recv, [(0, n - 1)])
        _require_equal(recv, [0, 0.5] if me == n - 1 else [0, 0], "permute of two ranks")


@_check
def messages(comm: Communicator) -> None:
    """Receives started before and after the sends get messages of their tag in order; the sender's array is free.
    Small messages, and more large ones than may be stored for a receiver who has not asked yet."""
    for count in (1, 4_000):
        _exchange_messages(comm, count)


def _exchange_messages(comm: Communicator, count: int) -> None:
    n, me = comm.size, comm.rank
    left, right = (me - 1) % n, (me + 1) % n
    received = [np.zeros((count, 2), np.int64) for _ in range(6)]
    early = [comm.start_recv(received[i], left, tag=i % 2) for i in range(3)]
    buffer = np.zeros((count, 2), np.int64)
    for i in range(6):
        buffer[:] = 10 * me + i, i % 2
        comm.send(buffer, right, tag=i % 2)
    for i in (4, 3, 5):
        comm.start_recv(received[i], left, tag=i % 2).wait()
    for handle in reversed(early):
        handle.wait()
        handle.wait()
        require(handle.done(), "a handle that was waited for is done")
    for i, found in enumerate(received):
        _require_equal(found, [[10 * left + i, i % 2]] * count, f"message {i}")


@_check
def overlapping_groups(comm: Communicator) -> None:
    """Many operations of several groups at once, waited for in another order than started."""
    n, me = comm.size, comm.rank
    pair, everyone = comm.split(me // 2, me), range(n)
    assert pair is not None
    started, arrays = [], []
    for i in range(20):
        group, members = (comm, everyone) if i % 3 else (pair, [r for r in everyone if r // 2 == me // 2])
        arrays.append((np.array([me + i]), np.zeros(1, int), sum(members) + i * len(members)))
        started.append(group.start_all_reduce(*arrays[-1][:2]))
    for i in [*range(10, 20), *range(9, -1, -1)]:
        started[i].wait()
        _require_equal(arrays[i][1], arrays[i][2], f"operation {i}")


@_check
def mixed_forms(comm: Communicator) -> None:
    """Ranks may use different forms of one collective, and ask whether it is done."""
    for i in range(3):
        total = np.zeros(4)
        if comm.rank % 2:
            comm.all_reduce(np.ones(4), total)
        else:
            handle = comm.start_all_reduce(np.ones(4), total)
            while not handle.done():
                time.sleep(0)
            handle.wait()
        _require_equal(total, np.full(4, comm.size), f"all_reduce {i}")


@_check
def progress_without_waiting(comm: Communicator) -> None:
    """What a rank has started moves on although it never asks, so that the others can finish."""
    name = np.zeros(200, np.uint8)
    if comm.rank == 0:
        handle, path = tempfile.mkstemp()
        os.close(handle)
        name[: len(path)] = list(path.encode())
    comm.broadcast(name, 0)
    path = bytes(name).rstrip(b"\0").decode()
    total = np.zeros(100_000)
    started = comm.start_all_reduce(np.ones(100_000), total)
    if comm.rank == comm.size - 1:
        started.wait()
        os.unlink(path)
    while os.path.exists(path):  # native code that takes its time
        time.sleep(0.001)
    started.wait()
    _require_equal(total, np.full(100_000, comm.size), "all_reduce that nobody asked for")


@_check
def wrong_operands(comm: Communicator) -> None:
    """What is wrong by itself is refused before anybody hears of it."""
    one = np.ones(1)
    require_error(TypeError, lambda: comm.all_reduce([1.0], one), "a list")  # type: ignore[arg-type]
    require_error(ValueError, lambda: comm.all_reduce(np.ones((4, 4)).T, np.ones((4, 4))), "strides")
    require_error(TypeError, lambda: comm.start_all_reduce(np.ones(1, "f4"), one), "two dtypes")
    require_error(ValueError, lambda: comm.start_all_gather(one, np.ones(comm.size + 1)), "sizes")
    require_error(ValueError, lambda: comm.all_reduce(one, one, "mean"), "an unknown reduction")
    require_error(ValueError, lambda: comm.start_broadcast(one, comm.size), "a root outside")
    require_error(ValueError, lambda: comm.start_recv(np.frombuffer(bytes(8)), 0), "a read-only buffer")
    require_error(ValueError, lambda: comm.all_to_all(one, one, [2] * comm.size, [1] * comm.size), "counts")
    require_error(ValueError, lambda: comm.permute(one, one.copy(), [(0, 0), (comm.size - 1, 0)]), "two sources")
    comm.barrier()


@_check
def different_collectives(comm: Communicator) -> None:
    """Ranks that start different collectives all get an error with both calls and their lines."""
    _need(comm, 2)
    data = np.ones(comm.size)
    _disagree(lambda: comm.start_barrier() if comm.rank == 0 else comm.start_all_reduce(data, data), "barrier", "sum")


@_check
def different_sizes(comm: Communicator) -> None:
    """Sizes must agree."""
    _need(comm, 2)
    data = np.ones(2 + (comm.rank == 1))
    _disagree(lambda: comm.start_all_reduce(data, data), "size=2", "size=3")


@_check
def different_counts(comm: Communicator) -> None:
    """What one rank sends in an uneven exchange is what the other expects."""
    _need(comm, 2)
    counts, more = [1] * comm.size, [1] * comm.size
    more[1] += comm.rank == 0
    data, recv = np.ones(sum(more)), np.ones(comm.size)
    _disagree(lambda: comm.start_all_to_all(data, recv, more, counts))


@_check
def unlike_messages(comm: Communicator) -> None:
    """A message that does not fit is an error with both lines at the receiver."""
    if comm.rank == 0:
        comm.send(np.ones(3), comm.size - 1)
    if comm.rank == comm.size - 1:
        started = _start_and_wait(lambda: comm.start_recv(np.ones(4), 0))
        error = require_error(CollectiveMismatch, started, "a message of another size")
        for part in ("size=3", "size=4", "collectives.py"):
            require(part in str(error), f"the error should have {part!r}: {error}")


@_check
def refusals_after_close(comm: Communicator) -> None:
    """A communicator that was closed refuses."""
    comm.barrier()
    comm.close()
    require_error(CommunicatorError, comm.barrier, "a barrier after close")


def _need(comm: Communicator, size: int) -> None:
    if comm.size < size:
        raise CheckSkipped(f"needs {size} ranks")


def _start_and_wait(start: Callable[[], Any]) -> Callable[[], None]:
    return lambda: start().wait()


def _disagree(start: Callable[[], Any], *parts: str) -> None:
    error = require_error(CollectiveMismatch, _start_and_wait(start), "ranks that disagree")
    require(len(set(re.findall(r"rank \d+", str(error)))) > 1, f"the error should name two ranks: {error}")
    for part in ("collectives.py", *parts):
        require(part in str(error), f"the error should have {part!r}: {error}")

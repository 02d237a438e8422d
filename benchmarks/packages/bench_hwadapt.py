"""Memory, copies and collectives of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_hwadapt import device, run_ranks


def test_allocate_and_free(benchmark: Any) -> None:
    cpu = device("cpu")
    benchmark(lambda: cpu.allocate(4096))


def test_copy_1_mib(benchmark: Any) -> None:
    cpu = device("cpu")
    source, target = cpu.adopt(np.ones(1 << 18, np.float32)), cpu.allocate(1 << 20)
    benchmark(lambda: cpu.copy(target, source))


def test_100_all_reduces_of_two_threads(benchmark: Any) -> None:
    def rank(communicator: Any) -> None:
        total = np.empty(16, np.float32)
        for _ in range(100):
            communicator.all_reduce(np.ones(16, np.float32), total)

    benchmark(lambda: run_ranks(rank, 2))

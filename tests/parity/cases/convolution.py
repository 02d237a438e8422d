"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, call
from parity.inputs import tensor as t

F = "nn.functional."
SPACE = {1: (7,), 2: (6, 5), 3: (4, 5, 4)}
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}


def cases() -> Iterator[Case]:
    for rank in (1, 2, 3):
        yield from _convolutions(rank)
        yield from _transposed(rank)
        yield from _pools(rank)
        yield from _adaptive(rank)


def _convolutions(rank: int) -> Iterator[Case]:
    name, space, kernel = f"{F}conv{rank}d", SPACE[rank], (3,) * rank
    x, w = t(2, 4, *space), t(6, 4, *kernel)
    options: tuple[dict[str, Any], ...] = (
        {}, {"stride": 2}, {"padding": 1}, {"padding": [1] * rank}, {"padding": "SAME"}, {"padding": "VALID"},
        {"padding": "SAME", "stride": 2}, {"padding": 2, "dilation": 2}, {"padding": [1, 0] * rank},
    )  # fmt: skip
    for kwargs in options:
        yield call(name, x, w, **kwargs)
    yield call(name, x, w, t(6), stride=2, padding=1)
    yield call(name, x, t(6, 2, *kernel), groups=2, padding=1)
    yield call(name, x, t(4, 1, *kernel), groups=4, padding=1)
    yield call(name, t(2, *space, 4), w, t(6), padding=1, data_format=LAST[rank])
    yield call(name, t(2, 4, *space, dtype="float64"), t(6, 4, *kernel, dtype="float64"))
    yield call(name, x, t(6, 3, *kernel))
    yield call(name, x, t(6, 4, *(1,) * rank))


def _transposed(rank: int) -> Iterator[Case]:
    name, space = f"{F}conv{rank}d_transpose", (4,) * rank
    x, w = t(2, 4, *space), t(4, 6, *(3,) * rank)
    options: tuple[dict[str, Any], ...] = (
        {}, {"stride": 2}, {"padding": 1}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2},
        {"stride": 2, "output_size": [10] * rank}, {"padding": "SAME", "stride": 2},
    )  # fmt: skip
    for kwargs in options:
        yield call(name, x, w, **kwargs)
    yield call(name, x, w, t(6))
    yield call(name, x, t(4, 3, *(3,) * rank), groups=2)
    yield call(name, t(2, *space, 4), w, data_format=LAST[rank])


def _pools(rank: int) -> Iterator[Case]:
    x = t(2, 3, *SPACE[rank])
    options: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
        ((2,), {}), ((3, 2), {}), ((3, 2, 1), {}), ((3, 1, 1), {}), (([2] * rank,), {}), ((2, 2), {"ceil_mode": True}),
        ((3, 2, 1), {"ceil_mode": True}), ((2,), {"padding": "SAME"}),
    )  # fmt: skip
    for args, kwargs in options:
        yield call(f"{F}max_pool{rank}d", x, *args, **kwargs)
        yield call(f"{F}avg_pool{rank}d", x, *args, **kwargs)
    yield call(f"{F}max_pool{rank}d", x, 2, 2, return_mask=True)
    yield call(f"{F}max_pool{rank}d", x, 3, 2, 1, True)
    yield call(f"{F}avg_pool{rank}d", x, 3, 2, 1, exclusive=False)
    if rank > 1:
        yield call(f"{F}avg_pool{rank}d", x, 3, 2, 1, divisor_override=5)
        for name in ("max", "avg"):
            yield call(f"{F}{name}_pool{rank}d", t(2, *SPACE[rank], 3), 2, data_format=LAST[rank])


def _adaptive(rank: int) -> Iterator[Case]:
    x = t(2, 3, *SPACE[rank])
    for size in (1, 2, 3):
        yield call(f"{F}adaptive_avg_pool{rank}d", x, size)
        yield call(f"{F}adaptive_max_pool{rank}d", x, size)
    yield call(f"{F}adaptive_max_pool{rank}d", x, 2, True)
    if rank > 1:
        yield call(f"{F}adaptive_avg_pool{rank}d", x, [2, *(None,) * (rank - 1)])
        yield call(f"{F}adaptive_avg_pool{rank}d", t(2, *SPACE[rank], 3), 2, data_format=LAST[rank])

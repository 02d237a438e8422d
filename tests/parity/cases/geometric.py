"""Messages along edges, reductions over segments, and neighbourhoods that need no random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

EDGES = given([0, 1, 2, 0, 3], "int64"), given([1, 2, 1, 0, 0], "int64")
SEGMENTS = given([0, 0, 1, 3], "int64")
REDUCTIONS = ("sum", "mean", "max", "min")
MESSAGES = ("add", "sub", "mul", "div")


def cases() -> Iterator[Case]:
    for name in REDUCTIONS:
        yield call(f"geometric.segment_{name}", t(4, 3), SEGMENTS)
        yield call(f"geometric.segment_{name}", t(4, dtype="float64"), given([0, 1, 1, 2], "int32"))
        yield call(f"geometric.segment_{name}", t(4, 2, dtype="int64", low=-5, high=5), SEGMENTS)
        yield call("geometric.send_u_recv", t(4, 3), *EDGES, name)
        yield call("geometric.send_u_recv", t(4, 2, 3), *EDGES, name, 3)
        for message in MESSAGES:
            yield call("geometric.send_ue_recv", t(4, 3), t(5, 3, low=0.5), *EDGES, message, name)
    for message in MESSAGES:
        ends = given([0, 1, 2], "int64"), given([1, 2, 0], "int64")
        yield call("geometric.send_uv", t(4, 3), t(4, 3, low=0.5), *ends, message)
    yield call("geometric.send_uv", t(4, 3), t(4, 1, low=0.5), *EDGES)
    yield call("geometric.send_ue_recv", t(4, 3), t(5, 1), *EDGES)
    yield call("geometric.send_ue_recv", t(4, 3), t(5), *EDGES)
    yield call("geometric.send_u_recv", t(4, 3), *EDGES, "median")
    yield from _neighbourhoods()


def _neighbourhoods() -> Iterator[Case]:
    x, beside, count = given([0, 5, 2], "int64"), given([5, 9, 0, 8, 9], "int64"), given([2, 0, 3], "int32")
    yield call("geometric.reindex_graph", x, beside, count)
    other, counts = given([7, 0, 2], "int64"), given([1, 1, 1], "int32")
    yield call("geometric.reindex_heter_graph", x, [beside, other], [count, counts])
    row, columns = given([3, 7, 0, 9, 1, 4], "int64"), given([0, 2, 2, 5, 6], "int64")
    nodes, numbers = given([2, 0, 1], "int64"), given([10, 11, 12, 13, 14, 15], "int64")
    yield call("geometric.sample_neighbors", row, columns, nodes, -1, numbers, True)
    yield call("geometric.sample_neighbors", row, columns, nodes, 3, numbers, True)
    yield call("geometric.sample_neighbors", row, columns, nodes, 3, None, True)
    weights = given([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], grad=False)
    yield call("geometric.weighted_sample_neighbors", row, columns, weights, nodes, -1, numbers, True)
    yield call("geometric.weighted_sample_neighbors", row, columns, weights, nodes, 4, numbers, True)

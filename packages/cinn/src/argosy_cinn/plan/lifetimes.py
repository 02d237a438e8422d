"""The lifetimes of values in the arena."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from argosy_cinn.plan.memory import Lifetime, Place
from argosy_cinn.plan.steps import Step
from argosy_cinn.shapes import has_bytes, nbytes
from argosy_pir.values import BlockArgument, Value


def lifetimes_of(
    steps: Sequence[Step],
    stored: set[Value],
    places: Mapping[Hashable, Place],
    copies: list[tuple[Value, BlockArgument]],
) -> list[Lifetime]:
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    bytes_of: dict[Hashable, int] = {}
    found: list[Lifetime] = []
    for i, step in ((i, part) for i, whole in enumerate(steps) for part in whole.parts):
        for value in step.group.reads:
            last[step.key(value)] = i
        for value in step.group.members:
            key = step.key(value)
            if value in stored and key not in places and has_bytes(value):
                first[key] = last[key] = i
                bytes_of[key] = nbytes(value)
        found += [Lifetime(step.key(key), size, i, i) for key, size in step.buffers().items()]
    for value, _ in copies:
        last[value] = len(steps)
    return [*(Lifetime(key, bytes_of[key], first[key], last[key]) for key in first), *found]


def join_lifetimes(lifetimes: Sequence[Lifetime], parts: Mapping[Value, tuple[Value, int]]) -> list[Lifetime]:
    """The lifetimes where values lie in others, which then begin with the first of them and end with the last."""
    if not parts:
        return list(lifetimes)
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for life in lifetimes:
        key = whole_of(life.key, parts)[0]
        first[key] = min(life.first, first.get(key, life.first))
        last[key] = max(life.last, last.get(key, life.last))
    return [replace(v, first=first[v.key], last=last[v.key]) for v in lifetimes if v.key not in parts]


def whole_of(key: Hashable, parts: Mapping[Value, tuple[Value, int]]) -> tuple[Hashable, int]:
    """What a value lies in, in the end, and at which byte of it."""
    start = 0
    while key in parts:
        key, offset = parts[key]  # type: ignore[index]
        start += offset
    return key, start


def merge_lifetimes(lifetimes: Sequence[Lifetime], over: Mapping[Value, Value]) -> list[Lifetime]:
    """The lifetimes where values that take another's memory only make that one live longer."""
    last: dict[Hashable, int] = {}
    for life in lifetimes:
        key = over.get(life.key, life.key)  # type: ignore[call-overload]
        last[key] = max(life.last, last.get(key, 0))
    return [replace(life, last=last[life.key]) for life in lifetimes if life.key not in over]

"""The order of steps."""

from __future__ import annotations

import heapq

from argosy_cinn.fusion.groups import Fusion


def order_groups(fusion: Fusion, after: dict[int, set[int]]) -> list[int]:
    """Groups in an order that respects ``after``, as near to the program's as that allows."""
    waiting = {number: len(before) for number, before in after.items()}
    followers: dict[int, list[int]] = {}
    for number, before in after.items():
        for producer in before:
            followers.setdefault(producer, []).append(number)
    urgency = _urgency(fusion, followers)
    ready = [(urgency[n], n) for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order_groups: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        order_groups.append(number)
        for follower in followers.get(number, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (urgency[follower], follower))
    assert len(order_groups) == len(after), "groups depend on each other in a circle"
    return order_groups


def _urgency(fusion: Fusion, followers: dict[int, list[int]]) -> dict[int, int]:
    """The place of each group in the order: its own, or that of what waits for it, if that is earlier."""
    urgency: dict[int, int] = {}

    def visit(number: int) -> int:
        if number not in urgency:
            urgency[number] = fusion.groups[number].first
            urgency[number] = min([urgency[number], *(visit(f) for f in followers.get(number, ()))])
        return urgency[number]

    for number in fusion.groups:
        visit(number)
    return urgency

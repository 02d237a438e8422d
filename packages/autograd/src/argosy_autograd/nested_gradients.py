"""Eager gradients of gradients that are asked for one by one, as one forward sweep each.

``grad(..., create_graph=True)`` of what was computed with the results of others is, by the tape alone, reverse mode
over reverse mode: some three times more with every order. Here requests are remembered
(:mod:`argosy_autograd.history`), and one that comes again with the same history is captured with all requests on its
way, which ``taylor-mode`` makes a sweep of (:mod:`argosy_autograd.replay`); so is the backward pass over what was
computed with them. A training step that asks for derivatives of derivatives runs plainly twice, and by compiled sweeps
from then on; nothing else about it changes. Steps without requests that are nested in others, as for a gradient
penalty, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from argosy_autograd.anomaly import note_order
from argosy_autograd.engine import needed_nodes
from argosy_autograd.gradients import accumulate_grad
from argosy_autograd.history import History, Request, has_marks, leaves_of, mark
from argosy_autograd.replay import Function, read_back, run_replay
from argosy_autograd.tape import edge_of
from argosy_autograd.tracing import traced_grad
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_tensorcore.tensor import Tensor

__all__ = ["recorded_gradients", "run_nested_backward"]

_RUNS_BEFORE_CAPTURE = 2
_ORDER_AT_ONCE = 4
"""From this order on, nested reverse mode costs more than a capture even where a request never comes again."""

Results = Sequence[Tensor | None]

_runs: BoundedCache = BoundedCache(256)
"""How often requests came, by history."""

_inner: BoundedCache = BoundedCache(256)
"""The histories of requests that others were found to be nested in."""


def recorded_gradients(
    ends: Sequence[Tensor],
    wanted: Sequence[Tensor],
    seeds: Sequence[Tensor | None],
    plainly: Callable[[], Results],
) -> Results:
    """The gradients of ``ends``, weighted with ``seeds``, by ``wanted``, all of which they depend on, recorded;
    ``plainly()`` gives them by a backward pass over the tape."""
    history = None if _is_special(wanted, seeds) else read_back(ends, wanted)
    if history is None:
        found = plainly()
        note_order(ends, found)
        return found
    request = Request([edge_of(y) for y in ends], [edge_of(x) for x in wanted], seeds)  # type: ignore[misc]
    given = [g for g in seeds if g is not None]
    request.key = key = (_key(history, (*ends, *wanted, *given)), tuple(g is not None for g in seeds))
    for inner in history.requests:
        _inner[inner.key] = True
        request.order = max(request.order, 1 + inner.order)
    made: Results | None = None
    if (_count_run(key) and (request.order > 1 or key in _inner)) or request.order >= _ORDER_AT_ONCE:
        made = run_replay("gradient", key, _gradients(seeds), history, ends, wanted, given)
    made = plainly() if made is None else made
    mark(made, request)
    return made


def run_nested_backward(ends: Sequence[Tensor]) -> bool:
    """Add the gradients of ``ends`` to the leaves, where they were computed with derivatives of derivatives and this
    came before. Returns whether that was done."""
    if not has_marks():
        return False
    edges = [edge for y in ends if (edge := edge_of(y)) is not None]
    found = leaves_of(edges) if len(edges) == len(ends) else None
    reached = needed_nodes(edges, dict.fromkeys(found, 0), frozenset())[1] if found else set()
    leaves = [edge[0] for edge in found or () if edge in reached]
    if not leaves or any(x._hooks for x in leaves):
        return False
    history = read_back(ends, leaves)
    if history is None or all(request.order == 1 for request in history.requests):
        return False
    key = _key(history, (*ends, *leaves))
    made = (
        run_replay("backward", key, _gradients([None] * len(ends)), history, ends, leaves) if _count_run(key) else None
    )
    for leaf, g in zip(leaves, made or (), strict=False):
        accumulate_grad(leaf, g.payload.ndarray, True)
    return made is not None


def _gradients(seeds: Sequence[Tensor | None]) -> Function:
    """The gradients of values by points, weighted with factors where there are ``seeds``."""
    seeded = [g is not None for g in seeds]

    def function(values: list[Tensor], points: list[Tensor], factors: list[Tensor]) -> Results:
        left = iter(factors)
        return traced_grad(values, points, [next(left) if given else None for given in seeded], True, True, ())

    return function


def _key(history: History, tensors: Sequence[Tensor]) -> Hashable:
    return history.steps, history.ends, tuple(t.payload.array_type for t in tensors)


def _count_run(key: Hashable) -> bool:
    """Count this run of a history; whether it had come often before."""
    runs: int = _runs.get(key, 0)
    if runs <= _RUNS_BEFORE_CAPTURE:
        _runs[key] = runs + 1
    return runs >= _RUNS_BEFORE_CAPTURE


def _is_special(wanted: Sequence[Any], seeds: Sequence[Any]) -> bool:
    """Whether hooks wait for these gradients, one of them is asked for twice, or the weights can be differentiated."""
    if any(x._hooks if x._node is None else x._node.hooks for x in wanted) or len({id(x) for x in wanted}) < len(
        wanted
    ):
        return True
    return any(g is not None and not g.stop_gradient for g in seeds)

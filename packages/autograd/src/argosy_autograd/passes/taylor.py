"""The pass ``taylor-mode``: derivatives of derivatives become shared Taylor sweeps where that costs less.

A request for a gradient whose result another request depends on is nested: reverse mode over reverse mode costs some
three times more with every order. Where rows stay apart, the pass replaces nested requests by the coefficients of
one forward sweep, and leaves the others, such as the gradient with respect to parameters, to ``expand-gradients``:
reverse mode over the sweep. Both ways are expanded on a copy and the cheaper one by count of operations is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

from argosy_autograd.activity import postorder, read_values
from argosy_autograd.algebra import Value
from argosy_autograd.dialect import parts
from argosy_autograd.passes.expand import ExpandGradients
from argosy_autograd.taylor.collapse import collapse
from argosy_autograd.taylor.cost import cost, operation_cost
from argosy_autograd.taylor.deferred_coefficients import DeferredCoefficients, MissingCoefficient
from argosy_autograd.taylor.requests import Request, can_move, component, parse_request
from argosy_autograd.taylor.rows import RowAxes
from argosy_autograd.taylor.sweep import Sweep
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Operation, Program
from argosy_pir.passes import Pass, PassManager, register_pass
from argosy_pir.rewrite import note, spend

__all__ = ["TaylorMode"]


@register_pass("taylor-mode")
@dataclass(frozen=True)
class TaylorMode(Pass):
    """Rewrite nested gradient requests of the program's body; run ``decompose`` before and ``expand-gradients`` after.

    ``choice`` is ``"cheaper"``, or ``"always"`` to rewrite whatever can be.
    """

    choice: str = "cheaper"

    def run(self, program: Program) -> bool:
        """Returns whether anything was rewritten."""
        requests = [op for op in program.block if op.name == "ad.gradient"]
        if not requests or (self.choice != "always" and not nested_requests(requests)):
            return False
        made = rewrite_copy(program, "all") if self.choice == "always" else self._cheaper(program, requests)
        if made is None:
            return False
        _take_over(program, made)
        return True

    def _cheaper(self, program: Program, requests: Sequence[Operation]) -> Program | None:
        """The program rewritten, or None where nested reverse mode is the cheaper way."""
        sweep = rewrite_copy(program, "nested")
        if sweep is not None and (
            depth(requests) * len(nested_requests(requests)) >= _MANY or _is_plain_choice(sweep, requests)
        ):
            note(_choice_report("nested", {"nested": cost(sweep)}, requests))
            return sweep if spend("taylor-mode", requests[-1]) else None
        trials: dict[str | None, Program | None] = {None: program, "nested": sweep}
        if nested_requests(requests) != set(requests):
            trials["all"] = rewrite_copy(program, "all")
        costs = {which: _expanded_cost(trial) for which, trial in trials.items() if trial is not None}
        chosen = min(costs, key=lambda which: costs[which] * (1 if which is None else _PREFERENCE))
        note(_choice_report(chosen, costs, requests))
        if chosen is None or not spend("taylor-mode", requests[-1]):
            return None
        return trials[chosen]


_WAYS = {None: "nested reverse mode", "nested": "a forward sweep", "all": "a forward sweep for all gradients"}
_MANY = 48
"""The order times the number of nested requests from which on nested reverse mode is not even tried: its program alone
takes seconds to write down."""

_FEW_PASSES = 16
"""Forward passes that a sweep through loops may cost to be chosen at once, from the third order on, or from the second
where their number of steps is not known: there nested reverse mode, which takes seconds to write down, costs more
(measured: 60 passes at order 2 of a while loop)."""

_MOST_AT_ONCE = 16
"""Components of a derivative of a derivative that are wanted together, up to which a sweep is tried."""

_MOST_TANGLED = 256
"""Derivatives by the elements of an input without rows, up to which a sweep is tried (measured: 4 seconds)."""

_PREFERENCE = 0.9
"""Sweeps at equal counts are faster: they keep and read fewer values (measured: 10 to 15 % on PINN steps)."""


def nested_requests(requests: Sequence[Operation]) -> set[Operation]:
    """Those of ``requests`` (in program order) that another one of them depends on, or that depend on another one."""
    found: set[Operation] = set()
    for outer in requests:
        inner = _upstream_requests(outer)
        found |= {outer, *inner} if inner else set()
    return found


def depth(requests: Sequence[Operation]) -> int:
    """The length of the longest chain of ``requests`` (in program order), each of which depends on the one before."""
    found: dict[Operation, int] = {}
    for outer in requests:
        found[outer] = 1 + max((found[inner] for inner in _upstream_requests(outer) if inner in found), default=0)
    return max(found.values(), default=0)


def _repeat(requests: Sequence[Operation]) -> set[Operation]:
    """Those that differentiate again by an input that one they depend on differentiates by, and those ones."""
    found: set[Operation] = set()
    for outer in requests:
        inner = _inner_requests(outer)
        found |= {outer, *inner} if inner else set()
    return found


def _inner_requests(outer: Operation) -> set[Operation]:
    """The requests that ``outer`` depends on and that differentiate by an input that it differentiates by."""
    return {inner for inner in _upstream_requests(outer) if set(parts(inner)[1]) & set(parts(outer)[1])}


def _upstream_requests(request: Operation) -> list[Operation]:
    outputs, _, cotangents = parts(request)
    stack = [*outputs, *cotangents]
    found, seen = [], set(stack)
    while stack:
        op = stack.pop().owner
        if not isinstance(op, Operation):
            continue
        if op.name == "ad.gradient" and op not in found:
            found.append(op)
        more = [v for v in read_values(op) if v not in seen]
        seen.update(more)
        stack.extend(more)
    return found


def _choice_report(chosen: str | None, costs: dict[str | None, float], requests: Sequence[Operation]) -> str:
    """What `explain` shows of the choice: the work of each way to write the program, and how often that computes what
    is differentiated."""
    once = sum(operation_cost(inner) for op in _differentiate(requests) for inner in op.walk())
    shown = [f"{_WAYS[way]} {count:.3g}{_as_passes(count, once)}" for way, count in costs.items()]
    return f"derivatives of derivatives: {_WAYS[chosen]}; estimated operations: {', '.join(shown)}"


def _differentiate(requests: Sequence[Operation]) -> list[Operation]:
    """The operations of what the innermost of ``requests`` differentiate."""
    return postorder([y for op in requests if not _upstream_requests(op) for y in parts(op)[0]], None)


def _is_plain_choice(sweep: Program, requests: Sequence[Operation]) -> bool:
    """Whether ``sweep`` goes through loops of which nested reverse mode is sure to cost more."""
    inner = [each for op in _differentiate(requests) for each in op.walk()]
    names = {op.name for op in inner}
    least = 2 if "control.while" in names else 3
    if not names & {"control.while", "control.scan", "control.for"} or depth(requests) < least:
        return False
    return cost(sweep) <= _FEW_PASSES * sum(map(operation_cost, inner))


def _as_passes(count: float, once: float) -> str:
    return f" ({count / once:.3g} forward passes)" if once else ""


def _expanded_cost(program: Program) -> float:
    trial = program.clone()
    ExpandGradients().run(trial)
    PassManager("cse,dce").run(trial)
    return cost(trial)


def rewrite_copy(program: Program, which: str) -> Program | None:
    """A copy of ``program`` with those requests as sweeps that can be: ``"all"`` or the ``"nested"`` ones. None where
    there are none."""
    refused: set[int] = set()
    while True:
        made = program.clone()
        try:
            return made if _rewrite(made, which, refused) else None
        except MissingCoefficient as error:
            refused.add(error.request)


def _rewrite(program: Program, which: str, refused: set[int]) -> bool:
    """Rewrite requests in place, except those with the numbers ``refused``; returns whether there were any."""
    requests = [op for op in program.block if op.name == "ad.gradient"]
    chosen = set(requests) if which == "all" else nested_requests(requests)
    repeated = _repeat(requests)
    again = {op for op in repeated if _inner_requests(op)}
    order = depth(requests)
    deferred = DeferredCoefficients(Sweep())
    directions: dict[tuple[Value, int, int], int] = {}
    analysis = cache(lambda source, count: RowAxes({source: tuple(range(count))}, deferred.sweep.base))
    changed = False
    for number, op in enumerate(requests):
        if op not in chosen or number in refused:
            continue
        found = [parse_request(op, i, analysis) for i, r in enumerate(op.results) if r.has_uses]
        readable = [r for r in found if r and (r.count or op in repeated) and can_move(r, analysis)]
        if len(readable) < len(found) or (op in again and any(map(_is_wide, readable))):
            continue
        if any(_is_tangled(request, order) for request in readable):
            continue
        deferred.request = number
        with emit_at(Builder.before(op), op.location):
            for request in readable:
                _replace(deferred, request, directions)
        changed = True
        if not any(r.has_uses for r in op.results):
            op.erase()
    if changed:
        deferred.keep(program)
        collapse(program)
    return changed


def _take_over(program: Program, made: Program) -> None:
    """Give ``program`` the body of ``made``, a changed copy of it."""
    for state, other in zip(program.states, made.states, strict=True):
        state.argument = other.argument
    program.region = made.region
    program.region.parent = program


def _is_wide(request: Request) -> bool:
    """Whether a request that differentiates again wants so many components at once, products with a Hessian say, that
    reverse mode is better: each takes a coefficient for each component of the first derivative."""
    whole = any(_single_component(user, request) is None for user in request.result.users)
    return whole and request.components > _MOST_AT_ONCE


def _is_tangled(request: Request, order: int) -> bool:
    """Whether no rows stay apart (batch normalisation mixes them) and derivatives of this ``order`` by all elements
    are so many that writing them down would take minutes."""
    return request.count == 0 and comb(request.components + order - 1, order) > _MOST_TANGLED


def _replace(deferred: DeferredCoefficients, request: Request, directions: dict[tuple[Value, int, int], int]) -> None:
    """Put components in the place of the request's result: single ones where single ones are read."""
    made: dict[int, Value] = {}

    def component_at(number: int) -> Value:
        if number not in made:
            key = (request.source, request.count, number)
            if key not in directions:
                directions[key] = deferred.sweep.add_direction(
                    request.source, _unit(request, number), (request.count, number)
                )
            found = component(deferred, request, directions[key])
            rows = request.source.shape[: request.count]
            made[number] = prim.constant(0, request.source.dtype, rows) if found is None else found
        return made[number]

    for user in request.result.users:
        number = _single_component(user, request)
        if number is not None:
            user.replace_with([_reshape(component_at(number), user.result.shape)])
    if request.result.has_uses:
        request.result.replace_all_uses_with(_join([component_at(i) for i in range(request.components)], request))


def _unit(request: Request, number: int) -> Value:
    """The direction of component ``number``: one there and zero elsewhere, in every row."""
    source, count = request.source, request.count
    one = prim.constant(1, source.dtype, ())
    if request.components == 1:
        return prim.broadcast(one, shape=source.shape, axes=())
    size = request.components
    at = prim.pad(
        prim.reshape(one, shape=(1,)),
        prim.constant(0, source.dtype),
        low=(number,),
        high=(size - 1 - number,),
        interior=(0,),
    )
    row = prim.reshape(at, shape=source.shape[count:])
    return prim.broadcast(row, shape=source.shape, axes=tuple(range(count, source.ndim)))


def _single_component(op: Operation, request: Request) -> int | None:
    """Which component ``op`` reads of the result, if it is a slice of a single one in every row."""
    if op.name != "prim.slice" or request.components == 1:
        return None
    shape = request.source.shape
    start, limit, stride = (op.attributes[k] for k in ("start", "limit", "stride"))
    whole = all(start[i] == 0 and limit[i] == shape[i] and stride[i] == 1 for i in range(request.count))
    if not whole or any(not isinstance(s, int) or limit[i] != s + 1 for i, s in _numbered_from(start, request.count)):
        return None
    number = 0
    for i, s in _numbered_from(start, request.count):
        number = number * shape[i] + s
    return number


def _numbered_from(values: Sequence[int], count: int) -> list[tuple[int, int]]:
    return list(enumerate(values))[count:]


def _reshape(value: Value, shape: tuple[object, ...]) -> Value:
    return value if value.shape == shape else prim.reshape(value, shape=shape)


def _join(components: list[Value], request: Request) -> Value:
    rows = request.source.shape[: request.count]
    columns = [prim.reshape(c, shape=(*rows, 1)) for c in components]
    whole = columns[0] if len(columns) == 1 else prim.concat(*columns, axis=request.count)
    return _reshape(whole, request.source.shape)

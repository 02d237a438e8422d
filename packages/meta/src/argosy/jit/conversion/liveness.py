"""Live variables: which names may be read after a statement, from the syntax of a function (Aho et al., 2006, 9.2.5).

Where a name is live, control flow on tensors has to give it a value on every side; where it is not, none is needed.
Names that inner functions read are live everywhere; in ``try`` and ``match`` more may count as live than is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from argosy.jit.conversion.scan_names import names_assigned, names_declared

__all__ = ["live_after", "live_before", "names_read", "read_by_inner_functions"]

Live = frozenset[str]
_NOTHING: Live = frozenset()
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class _Jumps:
    """What is live where ``break`` and ``continue`` lead."""

    breaks: Live = _NOTHING
    continues: Live = _NOTHING


def names_read(nodes: Iterable[ast.AST]) -> Live:
    """All names that are read in ``nodes``, inner functions included."""
    found = (x for node in nodes for x in ast.walk(node))
    return frozenset(x.id for x in found if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Store))


def read_by_inner_functions(body: Iterable[ast.AST]) -> Live:
    """Names that functions and classes defined in ``body`` read, or set as variables of this function."""
    inner = [x for node in body for x in ast.walk(node) if isinstance(x, _INNER)]
    return names_read(inner) | names_declared((s for x in inner for s in ast.iter_child_nodes(x)), ast.Nonlocal)


def live_after(body: Sequence[ast.stmt], end: Live, everything: Live) -> list[Live]:
    """For each statement of ``body`` the names that may be read after it; ``end`` are those after the last one, and
    ``everything`` those where jumps lead out of ``body``."""
    jumps = _Jumps(everything, everything)
    live, found = end, []
    for statement in reversed(body):
        found.append(live)
        live = _live_before(statement, live, jumps)
    return found[::-1]


def live_before(statement: ast.stmt, after: Live, everything: Live) -> Live:
    """The names that may be read from ``statement`` on."""
    return _live_before(statement, after, _Jumps(everything, everything))


def _block(body: Sequence[ast.stmt], live: Live, jumps: _Jumps) -> Live:
    for statement in reversed(body):
        live = _live_before(statement, live, jumps)
    return live


def _live_before(node: ast.stmt, after: Live, jumps: _Jumps) -> Live:
    if isinstance(node, (ast.Return, ast.Raise)):
        return names_read([node])
    if isinstance(node, (ast.Break, ast.Continue)):
        return jumps.breaks if isinstance(node, ast.Break) else jumps.continues
    if isinstance(node, ast.If):
        sides = _block(node.body, after, jumps) | _block(node.orelse, after, jumps)
        return names_read([node.test]) | sides
    if isinstance(node, (ast.While, ast.For)):
        return _loop(node, after, jumps)
    if isinstance(node, ast.With):
        inner = _block(node.body, after, jumps) - _targets(item.optional_vars for item in node.items)
        return names_read(node.items) | inner
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Delete)):
        return (after - _set_by(node)) | names_read([node])
    return after | names_read([node])


def _loop(node: ast.While | ast.For, after: Live, jumps: _Jumps) -> Live:
    leaving = _block(node.orelse, after, jumps)
    test = names_read([node.test]) if isinstance(node, ast.While) else _NOTHING
    target = _NOTHING if isinstance(node, ast.While) else _targets([node.target])
    head = test | leaving
    # What is read before it is set comes from the step before. Once around is enough: a name that is live at the head
    # of the next step is live here already. Twice would be 2^depth times in nested loops.
    head |= _block(node.body, head, _Jumps(after, head)) - target
    return head if isinstance(node, ast.While) else head | names_read([node.iter, node.target])


def _set_by(node: ast.Assign | ast.AnnAssign | ast.Delete) -> Live:
    if isinstance(node, ast.AnnAssign):
        return _NOTHING if node.value is None else _targets([node.target])
    return _targets(node.targets)


def _targets(targets: Iterable[ast.expr | None]) -> Live:
    return frozenset(names_assigned(t for t in targets if t is not None))

"""``return``, ``break`` and ``continue`` without jumps, so that what holds them can become a region.

- A ``return`` in an ``if``: what follows the ``if`` moves into the branch that goes on, so that both branches return.
- A ``return`` in a loop: a flag and a value are set and the loop is left; after it, ``if flag: return value``.
- ``break`` and ``continue``: flags; what follows in the body runs ``if not flag``.

On Python values the result does exactly what the original did.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy

from argosy.jit.conversion.scan_names import contains, returns_always

__all__ = ["Names", "without_jumps", "without_returns"]

RUNTIME = "_argosy_rt"


class Names:
    """Fresh names within one function."""

    def __init__(self) -> None:
        self._count = 0

    def new_name(self, stem: str) -> str:
        """A name that starts with ``stem`` and is used once."""
        self._count += 1
        return f"{stem}_{self._count}"


def assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    """``name = value``, at the place of ``at``."""
    return _place_at(ast.Assign([ast.Name(name, ast.Store())], value), at)  # type: ignore[return-value]


def load(name: str) -> ast.Name:
    """The name, read."""
    return ast.Name(name, ast.Load())


def _place_at(node: ast.AST, place: ast.AST) -> ast.AST:
    ast.copy_location(node, place)
    return ast.fix_missing_locations(node)


def _if_not(flags: Sequence[str], body: list[ast.stmt], at: ast.AST) -> ast.stmt:
    test: ast.expr = load(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.Or(), [load(f) for f in flags])
    return _place_at(ast.If(ast.UnaryOp(ast.Not(), test), body, []), at)  # type: ignore[return-value]


# return


def without_returns(body: list[ast.stmt], names: Names) -> list[ast.stmt]:
    """The statements of a function with ``return`` at the ends of branches only, and in no loop that can do
    without."""
    made: list[ast.stmt] = []
    for i, node in enumerate(body):
        if isinstance(node, (ast.While, ast.For)) and contains([node], ast.Return) and _is_movable(node):
            rest = _loop_returning(node, names) + body[i + 1 :]
            return made + without_returns(rest, names)
        if isinstance(node, ast.If) and contains([node], ast.Return):
            return [*made, _both_return(node, body[i + 1 :], names)]
        made.append(node)
        if isinstance(node, (ast.Return, ast.Raise)):
            return made
    return made


def _both_return(node: ast.If, rest: list[ast.stmt], names: Names) -> ast.stmt:
    branches = []
    for branch in (node.body, node.orelse):
        going_on = branch if returns_always(branch) else [*branch, *deepcopy(rest)]
        done = without_returns(going_on, names)
        if not returns_always(done):
            done.append(_place_at(ast.Return(ast.Constant(None)), done[-1] if done else node))  # type: ignore[arg-type]
        branches.append(done)
    return _place_at(ast.If(node.test, *branches), node)  # type: ignore[return-value]


def _is_movable(loop: ast.While | ast.For) -> bool:
    """Whether all jumps of a loop stand in its body or in ``if`` there, and it has no ``else``."""
    return not loop.orelse and _jumps_in_ifs(loop.body)


def _jumps_in_ifs(body: Sequence[ast.stmt]) -> bool:
    for node in body:
        if isinstance(node, ast.If):
            if not (_jumps_in_ifs(node.body) and _jumps_in_ifs(node.orelse)):
                return False
        elif isinstance(node, (ast.While, ast.For)):
            if contains(node.body, ast.Return) and not _is_movable(node):
                return False
        elif not isinstance(node, (ast.Break, ast.Continue, ast.Return)) and contains(
            [node], ast.Break, ast.Continue, ast.Return
        ):
            return False
    return True


def _loop_returning(node: ast.While | ast.For, names: Names) -> list[ast.stmt]:
    flag, value = names.new_name("_returned"), names.new_name("_value")
    body = _returns_to_breaks(node.body, flag, value, names)
    loop = deepcopy(node)
    loop.body = body
    nothing = ast.Attribute(load(RUNTIME), "NOT_RETURNED", ast.Load())
    after = ast.If(load(flag), [ast.Return(load(value))], [])
    return [assign(flag, ast.Constant(False), node), assign(value, nothing, node), loop, _place_at(after, node)]  # type: ignore[list-item]


def _returns_to_breaks(body: list[ast.stmt], flag: str, value: str, names: Names) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.Return):
            given = node.value or ast.Constant(None)
            made += [assign(value, given, node), assign(flag, ast.Constant(True), node), _place_at(ast.Break(), node)]  # type: ignore[list-item]
        elif isinstance(node, ast.If):
            branches = [_returns_to_breaks(b, flag, value, names) for b in (node.body, node.orelse)]
            made.append(_place_at(ast.If(node.test, *branches), node))  # type: ignore[arg-type]
        elif isinstance(node, (ast.While, ast.For)) and contains([node], ast.Return):
            inner = _loop_returning(node, names)
            made += [*inner[:-1], *_returns_to_breaks([inner[-1]], flag, value, names)]
        else:
            made.append(node)
    return made


# break and continue


def without_jumps(loop: ast.While | ast.For, names: Names) -> tuple[list[ast.stmt], list[ast.stmt], str | None] | None:
    """What goes before the loop, its body without ``break`` and ``continue``, and the flag that ends it (or None).

    None where the jumps stand in other statements than ``if``, or the loop has an ``else``.
    """
    if not _is_movable(loop):
        return None
    leaves = names.new_name("_left") if contains(loop.body, ast.Break) else None
    skips = names.new_name("_skipped") if contains(loop.body, ast.Continue) else None
    if leaves is None and skips is None:
        return [], loop.body, None
    body = _guard_statements(loop.body, leaves, skips)
    before = [assign(flag, ast.Constant(False), loop) for flag in (leaves, skips) if flag]
    if skips:
        body = [assign(skips, ast.Constant(False), loop), *body]
    return before, body, leaves


def _guard_statements(body: list[ast.stmt], leaves: str | None, skips: str | None) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for i, node in enumerate(body):
        if isinstance(node, (ast.Break, ast.Continue)):
            flag = leaves if isinstance(node, ast.Break) else skips
            assert flag is not None
            return [*made, assign(flag, ast.Constant(True), node)]
        if isinstance(node, ast.If) and contains([node], ast.Break, ast.Continue):
            used = [
                flag for flag, kind in ((leaves, ast.Break), (skips, ast.Continue)) if flag and contains([node], kind)
            ]
            branches = [_guard_statements(b, leaves, skips) for b in (node.body, node.orelse)]
            made.append(_place_at(ast.If(node.test, *branches), node))  # type: ignore[arg-type]
            rest = _guard_statements(body[i + 1 :], leaves, skips)
            return [*made, _if_not(used, rest, body[i + 1])] if rest else made
        made.append(node)
    return made

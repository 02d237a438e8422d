"""What statements do to names and to the flow of control, read from their syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["HELPER", "contains", "is_plain", "names_assigned", "names_declared", "returns_always", "walk_scope"]

HELPER = "_argosy_"
"""How names of generated functions begin; they are no variables of the user's."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk_scope(nodes: Iterable[ast.AST], into: tuple[type, ...] = ()) -> Iterator[ast.AST]:
    """The nodes and all below them within the same function. Nodes of the types ``into`` are given, not entered."""
    closed = (*_SCOPES, *into)
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, closed):
            waiting += list(ast.iter_child_nodes(node))[::-1]


def names_assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that the statements bind, in order of appearance."""
    found: dict[str, None] = {}
    for node in walk_scope(nodes, _COMPREHENSIONS):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
        elif isinstance(node, ast.alias):
            found[(node.asname or node.name).partition(".")[0]] = None
        elif isinstance(node, _COMPREHENSIONS):
            named = (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            found.update(dict.fromkeys(named))
    return [name for name in found if not name.startswith(HELPER)]


def names_declared(nodes: Iterable[ast.AST], kind: type) -> set[str]:
    """Names declared ``global`` or ``nonlocal``, by the type of the node."""
    return {name for node in walk_scope(nodes) if isinstance(node, kind) for name in node.names}  # type: ignore[attr-defined]


def contains(nodes: Iterable[ast.AST], *kinds: type) -> bool:
    """Whether a node of these types is among the statements of this function; ``break`` and ``continue`` of inner
    loops do not count.
    """
    loops = (ast.For, ast.While, ast.AsyncFor) if {ast.Break, ast.Continue} & set(kinds) else ()
    return any(isinstance(node, kinds) for node in walk_scope(nodes, loops))


def returns_always(body: Sequence[ast.stmt]) -> bool:
    """Whether no way leads past the end of ``body``."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    return isinstance(last, ast.If) and returns_always(last.body) and returns_always(last.orelse)


def is_plain(body: Iterable[ast.stmt]) -> bool:
    """Whether the statements set local variables and do nothing else that could be seen, but by what they call."""
    for node in body:
        if isinstance(node, ast.Assign):
            if not all(_is_local(target) for target in node.targets):
                return False
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if not isinstance(node.target, ast.Name):
                return False
        elif isinstance(node, (ast.If, ast.While)):
            if not (is_plain(node.body) and is_plain(node.orelse)):
                return False
        elif isinstance(node, ast.For):
            if not (_is_local(node.target) and is_plain(node.body) and is_plain(node.orelse)):
                return False
        elif not isinstance(node, (ast.Pass, ast.Return, ast.Break, ast.Continue)) and not _is_text(node):
            return False
    return True


def _is_local(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(_is_local(x) for x in target.elts)
    return isinstance(target, ast.Name)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

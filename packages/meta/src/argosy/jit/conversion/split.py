"""A function cut at the statements where its graph broke: what stands before, between and after them become functions
of their own, which can be compiled, and the function becomes one that calls them and runs the statements as they are.

A part takes the variables that it reads and gives those that it sets and something else reads, ``(False, variables)``,
or ``(True, result)`` where it ends in ``return``. Parts hold statements only that do nothing but set local variables,
or are among :data:`EFFECTS`; of loops, branches and ``with`` that stay open, the bodies are cut in turn. A function
is left alone where that could be seen: where it changes tensors or containers in place, which parts would have copies
of, and where inner functions look at its variables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence, Set
from copy import deepcopy
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from argosy.jit.conversion.rewriter import make_function
from argosy.jit.conversion.scan_names import contains, is_plain, names_assigned, returns_always
from argosy.jit.conversion.source import function_of, syntax

__all__ = ["is_quiet", "split_function"]

EFFECTS = frozenset({"backward", "step", "clear_grad", "clear_gradients"})
"""Methods whose calls as statements change tensors, which a program does, and nothing else."""

_FRAMES = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"})
_INNER = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.NamedExpr)
_LEFT = (ast.Global, ast.Nonlocal, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, *_INNER)
_LEAST = 3  # operators that make a part worth while; one call does
_PARTS, _RESULT = "_argosy_parts", "_argosy_result"


def split_function(
    function: FunctionType, lines: Set[int], made_of: Callable[[FunctionType], Callable[..., Any]]
) -> tuple[FunctionType, list[Callable[..., Any]]] | None:
    """``function`` with ``made_of(part)`` in the place of each part, and these; None where it cannot be cut, or there
    would be no parts. ``lines`` are those where the graph broke."""
    node = syntax(function)
    if node is None or not _may_be_cut(node):
        return None
    a = node.args
    parameters = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None}
    cut = _FunctionParts(function, node, parameters, lines)
    node.body = cut.block(node.body, parameters)
    if not cut.parts:
        return None
    parts = [made_of(part) for part in cut.parts]
    return function_of(function, node, {_PARTS: CellType(parts)}), parts


def _may_be_cut(node: ast.FunctionDef) -> bool:
    for found in ast.walk(ast.Module(node.body, [])):
        if isinstance(found, _LEFT):
            return False
        if isinstance(found, ast.Subscript) and isinstance(found.ctx, ast.Store):
            return False
        name = found.attr if isinstance(found, ast.Attribute) else found.id if isinstance(found, ast.Name) else ""
        if name.startswith("__") and not name.endswith("__"):  # what it means depends on the class
            return False
        if isinstance(found, ast.Attribute) and name.endswith("_") and not name.endswith("__"):
            return False  # a method that writes in place
    return True


def is_quiet(function: FunctionType) -> bool:
    """Whether a function, as its source says, changes nothing but its own variables, lists that it makes, and tensors
    by :data:`EFFECTS`. A lambda has no statements that could."""
    code = function.__code__
    if code not in _quiet:
        node = syntax(function)
        _quiet[code] = code.co_name == "<lambda>" or (node is not None and _is_quiet(node))
    return _quiet[code]


_quiet: WeakKeyDictionary[CodeType, bool] = WeakKeyDictionary()


def _is_quiet(node: ast.FunctionDef) -> bool:
    made = _lists(node)
    for found in ast.walk(ast.Module(node.body, [])):
        if isinstance(found, (ast.Global, ast.Nonlocal, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if isinstance(found, (ast.Subscript, ast.Attribute)) and not isinstance(found.ctx, ast.Load):
            return False
        if isinstance(found, ast.Expr) and not isinstance(found.value, ast.Constant):
            name, owner = _method_of(found)
            if name not in EFFECTS and not (name in ("append", "extend", "insert") and owner in made):
                return False
    return True


def _lists(node: ast.FunctionDef) -> set[str]:
    """Variables that are set to new lists, and to nothing else."""
    new: set[str] = set()
    other = {x.arg for x in ast.walk(node.args) if isinstance(x, ast.arg)}
    for found in ast.walk(ast.Module(node.body, [])):
        if isinstance(found, ast.Assign) and isinstance(found.value, (ast.List, ast.ListComp)):
            new |= {target.id for target in found.targets if isinstance(target, ast.Name)}
        elif isinstance(found, ast.Assign):
            other |= set(names_assigned(found.targets))
        elif isinstance(found, (ast.For, ast.With, ast.comprehension)):
            other |= set(names_assigned([found]))
    return new - other


class _FunctionParts:
    """The parts of one function."""

    def __init__(self, function: FunctionType, node: ast.FunctionDef, parameters: Set[str], lines: Set[int]) -> None:
        self.function = function
        self.lines = lines
        self.local = {*names_assigned(node.body), *parameters}
        self.uses = _reads(node.body)
        self.parts: list[FunctionType] = []

    def block(self, body: Sequence[ast.stmt], bound: Set[str]) -> list[ast.stmt]:
        """The statements with calls of parts; ``bound`` are the variables that are set for sure when they begin."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        at = bound
        for statement in body:
            if self.is_closed(statement, run):
                run.append(statement)
                continue
            made += self.part(run, at)
            at = _flow(run, at)[1]
            run = []
            made.append(self.split_inside(statement, at))
            at = _flow([statement], at)[1]
        return made + self.part(run, at)

    def is_closed(self, statement: ast.stmt, run: Sequence[ast.stmt]) -> bool:
        """Whether a statement can be of a part after ``run``: nothing broke there, and it is seen by its variables
        alone. Gradients of the same part may be computed and used; those that come from elsewhere differ each time."""
        if any(statement.lineno <= line <= (statement.end_lineno or line) for line in self.lines):
            return False
        if any(isinstance(n, ast.Name) and n.id in _FRAMES for n in ast.walk(statement)):
            return False
        if isinstance(statement, ast.Expr):
            name, owner = _method_of(statement)
            return name in EFFECTS and (owner in names_assigned(run) if name == "backward" else _goes_back(run))
        if isinstance(statement, ast.Return):
            return True
        return is_plain([statement]) and not contains([statement], ast.Return, ast.Break, ast.Continue)

    def split_inside(self, statement: ast.stmt, bound: Set[str]) -> ast.stmt:
        """A statement that Python runs, with parts in its blocks."""
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, bound)
            statement.orelse = self.block(statement.orelse, bound)
        elif isinstance(statement, (ast.For, ast.While)):
            inner = bound | set(names_assigned([statement.target])) if isinstance(statement, ast.For) else bound
            statement.body = self.block(statement.body, inner)
        elif isinstance(statement, ast.With):
            named = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            statement.body = self.block(statement.body, bound | set(names_assigned(named)))
        return statement

    def part(self, run: list[ast.stmt], bound: Set[str]) -> list[ast.stmt]:
        """What stands in the place of some statements: the call of a part, or they themselves, where it would do no
        work, or a variable may be unset."""
        inner = [n for s in run for n in ast.walk(s)]
        calls, operators = (sum(isinstance(n, kind) for n in inner) for kind in (ast.Call, ast.BinOp))
        if not calls and operators < _LEAST:
            return run
        needed, after = _flow(run, bound)
        needed &= self.local
        reads = _reads(run)
        given = [name for name in names_assigned(run) if self.uses.get(name, 0) > reads.get(name, 0) or name in needed]
        if not (needed <= bound and set(given) <= after):
            return run
        names = sorted(needed)
        body = [_return_pair(s) if isinstance(s, ast.Return) else s for s in deepcopy(run)]
        if not returns_always(run):
            body.append(ast.Return(_pair(False, _tuple(given, ast.Load()))))
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        node = ast.copy_location(make_function(self.function.__name__, arguments, body), run[0])
        part = function_of(self.function, ast.fix_missing_locations(node), {}, defaults=False)
        self.parts.append(part)
        return [ast.copy_location(s, run[0]) for s in self.call(len(self.parts) - 1, names, given, run)]

    def call(self, number: int, names: list[str], given: list[str], run: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that call a part and take what it gives."""
        callee = ast.Subscript(ast.Name(_PARTS, ast.Load()), ast.Constant(number), ast.Load())
        arguments: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
        result = ast.Subscript(ast.Name(_RESULT, ast.Load()), ast.Constant(1), ast.Load())
        assign: ast.stmt = ast.Assign([ast.Name(_RESULT, ast.Store())], ast.Call(callee, arguments, []))
        if returns_always(run):
            return [assign, ast.Return(result)]
        return [assign, ast.Assign([_tuple(given, ast.Store())], result)] if given else [assign]


def _method_of(statement: ast.stmt) -> tuple[str, str]:
    """Of a statement that calls a method its name and the variable that it is of; else empty."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return "", ""
    owner = call.func.value
    return call.func.attr, owner.id if isinstance(owner, ast.Name) else ""


def _goes_back(run: Sequence[ast.stmt]) -> bool:
    return any(_method_of(statement)[0] == "backward" for statement in run)


def _reads(body: Iterable[ast.AST]) -> dict[str, int]:
    """How often each name is read."""
    found: dict[str, int] = {}
    for statement in body:
        for node in ast.walk(statement):
            target = node.target if isinstance(node, ast.AugAssign) else node
            if isinstance(target, ast.Name) and (isinstance(target.ctx, ast.Load) or target is not node):
                found[target.id] = found.get(target.id, 0) + 1
    return found


def _flow(body: Sequence[ast.stmt], bound: Set[str]) -> tuple[set[str], set[str]]:
    """The names that statements read before they set them, and those that are set for sure after them, where
    ``bound`` are before."""
    needed, sets = _names_used(body, set())
    return needed, {*bound, *sets}


def _of_one(statement: ast.stmt, bound: set[str]) -> tuple[set[str], set[str]]:
    """The same of one statement: ``bound`` were set since the first."""
    if isinstance(statement, ast.If):
        first, second = (_names_used(block, bound) for block in (statement.body, statement.orelse))
        sets = [s for (_, s), b in ((first, statement.body), (second, statement.orelse)) if not returns_always(b)]
        both = set.intersection(*sets) if sets else set()
        return (set(_reads([statement.test])) - bound) | first[0] | second[0], both
    if isinstance(statement, (ast.For, ast.While)):
        target = set(names_assigned([statement.target])) if isinstance(statement, ast.For) else set()
        head = set(_reads([statement.iter if isinstance(statement, ast.For) else statement.test])) - bound
        return head | _names_used(statement.body, bound | target)[0] | _names_used(statement.orelse, bound)[0], set()
    if isinstance(statement, ast.With):
        named = set(names_assigned([i.optional_vars for i in statement.items if i.optional_vars is not None]))
        head = set(_reads([i.context_expr for i in statement.items])) - bound
        needed, inner = _names_used(statement.body, bound | named)
        return head | needed, inner | named
    if isinstance(statement, ast.Try):
        return set(_reads([statement])) - bound, set()
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return set(), set()
    return set(_reads([statement])) - bound, set(names_assigned([statement]))


def _names_used(body: Sequence[ast.stmt], bound: set[str]) -> tuple[set[str], set[str]]:
    needed: set[str] = set()
    sets: set[str] = set()
    for statement in body:
        reads, more = _of_one(statement, bound | sets)
        needed |= reads
        sets |= more
    return needed, sets


def _return_pair(statement: ast.Return) -> ast.Return:
    return ast.copy_location(ast.Return(_pair(True, statement.value or ast.Constant(None))), statement)


def _pair(done: bool, value: ast.expr) -> ast.Tuple:
    return ast.Tuple([ast.Constant(done), value], ast.Load())


def _tuple(names: Sequence[str], how: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, how) for name in names], how)

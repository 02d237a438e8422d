"""The rewriting of one function's syntax tree: statements and expressions become calls of the runtime."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from argosy.jit.conversion.jumps import RUNTIME, Names, assign, load, without_jumps, without_returns
from argosy.jit.conversion.liveness import live_after, live_before, names_read, read_by_inner_functions
from argosy.jit.conversion.scan_names import contains, is_plain, names_assigned, names_declared, returns_always

__all__ = ["make_function", "rewrite_function"]

_KEPT_CALLS = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})  # they look at their caller


def rewrite_function(node: ast.FunctionDef, everything: bool) -> ast.FunctionDef:
    """Rewrite ``node`` in place. ``everything`` says that statements with other effects than setting local variables
    are captured, too; without it Python runs them.
    """
    return _Rewriter(node, everything).function(node)


def _runtime(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(load(RUNTIME), name, ast.Load()), list(args), [])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(_no_arguments(), body)


def make_function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """A definition. Python 3.12 added ``type_params``, which older versions take for an attribute of no meaning."""
    node = ast.FunctionDef(name, arguments, body, [], None, None)
    node.type_params = []  # type: ignore[attr-defined]
    return node


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


class _Rewriter(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef, everything: bool) -> None:
        self.everything = everything
        self.names = Names()
        self.globals = names_declared(function.body, ast.Global)
        a = function.args
        self.parameters = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None}
        first = [*a.posonlyargs, *a.args]
        self.first = first[0].arg if first else None
        self.read = names_read(function.body)
        self.always = read_by_inner_functions(function.body) | names_declared(function.body, ast.Nonlocal)
        self.live: frozenset[str] = frozenset()
        """Names that may be read after the statement that is rewritten."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The whole function."""
        outer = names_declared(node.body, ast.Nonlocal)
        flat = without_returns(node.body, self.names)
        local = names_assigned(flat)
        body = self.block(flat)
        local = [
            n
            for n in dict.fromkeys([*local, *names_assigned(body)])
            if n not in self.parameters and n not in self.globals | outer
        ]
        if local:  # bound here, so that generated functions can say nonlocal
            binding = ast.If(
                ast.Constant(False), [ast.Assign([ast.Name(n, ast.Store()) for n in local], ast.Constant(None))], []
            )
            at = 1 if body and _is_docstring(body[0]) else 0
            while at < len(body) and isinstance(body[at], (ast.Global, ast.Nonlocal)):
                at += 1
            body.insert(at, ast.fix_missing_locations(ast.copy_location(binding, node)))
        node.body = body
        return node

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements rewritten one after the other; what is live after the last one is what is live now."""
        made: list[ast.stmt] = []
        end = self.live
        for statement, after in zip(body, live_after(body, end, self.read), strict=True):
            self.live = after
            result = self.visit(statement)
            made += result if isinstance(result, list) else [result]
        self.live = end
        return made

    def _body_of_loop(self, loop: ast.While | ast.For, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The rewritten ``body`` of ``loop``, after which the next step follows."""
        after, self.live = self.live, self.live | live_before(loop, self.live, self.read)
        made = self.block(body)
        self.live = after
        return made

    def _rewrite_parts(self, node: ast.stmt) -> ast.stmt:
        """A statement that stays as it is, its parts rewritten; all that it reads is live within."""
        after, self.live = self.live, self.live | names_read([node])
        self.generic_visit(node)
        self.live = after
        return node

    def visit_With(self, node: ast.With) -> Any:
        """The body is rewritten."""
        node.items = [self.visit(item) for item in node.items]
        node.body = self.block(node.body)
        return node

    visit_Try = visit_TryStar = visit_Match = visit_AsyncWith = visit_AsyncFor = _rewrite_parts

    # Scopes of their own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A nested function is rewritten by itself, unless it is a generator."""
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return (
            node
            if contains(node.body, ast.Yield, ast.YieldFrom, ast.Await)
            else rewrite_function(node, self.everything)
        )

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        """Left as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Left as it is."""
        return node

    # Statements

    def visit_If(self, node: ast.If) -> Any:
        """An ``if`` becomes two functions and a call that chooses."""
        returns = contains([node], ast.Return)
        jumps = contains([*node.body, *node.orelse], ast.Break, ast.Continue)
        convertible = not jumps and (not returns or (returns_always(node.body) and returns_always(node.orelse)))
        if not convertible or not self._may_capture([*node.body, *node.orelse]):
            node.test = self.visit(node.test)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        variables = self._variables([*node.body, *node.orelse])
        live = self._live(variables)
        body, orelse = self.block(node.body), self.block(node.orelse) or [ast.Pass()]
        return _place(self._if(node.test, body, orelse, variables, None if returns else live), node)

    def _if(
        self,
        test: ast.expr,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        variables: Sequence[str],
        live: ast.Tuple | None,
    ) -> list[ast.stmt]:
        """The functions and the call of an ``if`` whose sides are rewritten already, and set these variables; ``live``
        is None where both return."""
        holds, fails = self._local_function("holds", body, variables), self._local_function("fails", orelse, variables)
        accessors, get, put = self._accessors(variables)
        branches = [self.visit(test), load(holds.name), load(fails.name), load(get), load(put)]
        if live is None:
            return [holds, fails, *accessors, ast.Return(_runtime("return_if", *branches))]
        return [holds, fails, *accessors, ast.Expr(_runtime("if_", *branches, _texts(variables), live))]

    def visit_While(self, node: ast.While) -> Any:
        """A ``while`` becomes functions for its test and its body, and a call that repeats."""
        parts = without_jumps(node, self.names)
        if parts is None or contains(node.body, ast.Return) or not self._may_capture(node.body):
            return self._rewrite_parts(node)
        before, body, leaves = parts
        variables = self._variables([*before, *body])
        return [
            *before,
            *_place(self._convert_while(node.test, leaves, self._body_of_loop(node, body), variables), node),
        ]

    def _convert_while(
        self, test: ast.expr, leaves: str | None, body: Sequence[ast.stmt], variables: Sequence[str]
    ) -> list[ast.stmt]:
        """The functions and the call of a loop whose body is rewritten already, and sets these variables."""
        if leaves:
            test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), load(leaves)), test])
        tested = self._local_function("test", [ast.Return(self.visit(test))], [])
        step = self._local_function("step", body, variables)
        accessors, get, put = self._accessors(variables)
        functions = [load(name) for name in (tested.name, step.name, get, put)]
        call = _runtime("while_", *functions, _texts(variables), self._live(variables))
        return [tested, step, *accessors, ast.Expr(call)]

    def visit_For(self, node: ast.For) -> Any:
        """A ``for`` goes through Python's items; over ``range`` of tensors it becomes a ``while``."""
        parts = without_jumps(node, self.names)
        if parts is None or contains(node.body, ast.Return):
            return self._rewrite_parts(node)
        if _is_range(node.iter) and self._may_capture(node.body) and isinstance(node.target, ast.Name):
            return self._for_range(node, node.target.id, parts)
        return self._for_items(node, parts)

    def _for_items(self, node: ast.For, parts: tuple[list[ast.stmt], list[ast.stmt], str | None]) -> list[ast.stmt]:
        before, body, leaves = parts
        if leaves and not self._may_capture(body):
            return [self._rewrite_parts(node)]
        done = self._flagged_loop(node, self._body_of_loop(node, body), leaves, self._variables(body))
        loop = ast.For(node.target, self.visit(node.iter), done, [])
        return [*before, *_place([loop], node)]

    def _flagged_loop(
        self, loop: ast.For, body: list[ast.stmt], leaves: str | None, variables: Sequence[str]
    ) -> list[ast.stmt]:
        """The rewritten body of a loop over Python's items, which does nothing once the flag ``leaves`` is set."""
        if leaves is None:
            return body
        after, self.live = self.live, self.live | live_before(loop, self.live, self.read)
        guarded = self._if(ast.UnaryOp(ast.Not(), load(leaves)), body, [ast.Pass()], variables, self._live(variables))
        self.live = after
        return [*guarded, ast.If(_runtime("is_true", load(leaves)), [ast.Break()], [])]

    def _for_range(
        self, node: ast.For, name: str, loop: tuple[list[ast.stmt], list[ast.stmt], str | None]
    ) -> list[ast.stmt]:
        """Both loops, over tensors and over Python's numbers, call one function: with two copies of the body, nested
        loops would have 2^depth."""
        before, body, leaves = loop
        bounds, index, within, step = (
            self.names.new_name(s) for s in ("_bounds", "_index", "_argosy_within", "_argosy_step")
        )
        variables = self._variables(body)
        shared = self._local_function("body", self._body_of_loop(node, body), variables)
        call = ast.Expr(ast.Call(load(shared.name), [], []))
        parts = ast.Tuple([ast.Name(n, ast.Store()) for n in (index, within, step)], ast.Store())
        start = ast.Assign([parts], _runtime("index_range", load(bounds)))
        target = assign(name, load(index), node)
        advance = assign(index, ast.BinOp(load(index), ast.Add(), load(step)), node)
        test = ast.Call(load(within), [load(index)], [])
        carried = list(dict.fromkeys([name, index, *self._variables([*before, *body])]))
        staged = [start, *self._convert_while(test, leaves, [target, advance, call], carried)]
        plain = ast.For(node.target, load(bounds), self._flagged_loop(node, [call], leaves, variables), [])
        choice = ast.If(_runtime("is_staged_range", load(bounds)), staged, [plain])
        return [assign(bounds, self.visit(node.iter), node), *before, *_place([shared, choice], node)]

    def _may_capture(self, body: Sequence[ast.stmt]) -> bool:
        if contains(body, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Import, ast.ImportFrom):
            return False
        return self.everything or (is_plain(body) and not self.globals & set(names_assigned(body)))

    def _variables(self, body: Sequence[ast.stmt]) -> list[str]:
        return [name for name in names_assigned(body) if name not in self.globals]

    def _live(self, variables: Sequence[str]) -> ast.Tuple:
        """Those of ``variables`` that may be read after the statement."""
        return _texts([name for name in variables if name in self.live | self.always])

    def _local_function(self, stem: str, body: Sequence[ast.stmt], variables: Sequence[str]) -> ast.FunctionDef:
        head: list[ast.stmt] = []
        if variables:
            head.append(ast.Nonlocal(list(variables)))
        if self.globals:
            head.append(ast.Global(sorted(self.globals)))
        name = self.names.new_name(f"_argosy_{stem}")
        return make_function(name, _no_arguments(), [*head, *body])

    def _accessors(self, variables: Sequence[str]) -> tuple[list[ast.stmt], str, str]:
        reads = [_runtime("fetch", ast.Constant(n), _lambda(load(n))) for n in variables]
        get = self._local_function("get", [ast.Return(ast.List(list(reads), ast.Load()))], [])
        value = "_argosy_values"
        body: list[ast.stmt] = [ast.Pass()]
        if variables:
            targets = ast.Tuple([ast.Name(n, ast.Store()) for n in variables], ast.Store())
            body = [ast.Assign([targets], load(value))]
            body += [
                ast.If(_runtime("is_undefined", load(n)), [ast.Delete([ast.Name(n, ast.Del())])], []) for n in variables
            ]
        put = self._local_function("put", body, variables)
        put.args.args.append(ast.arg(value))
        return [get, put], get.name, put.name

    # Expressions

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``a if t else b``."""
        self.generic_visit(node)
        if _binds(node):
            return node
        return ast.copy_location(_runtime("choose", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``."""
        self.generic_visit(node)
        if _binds(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        first, *others = node.values
        return ast.copy_location(_runtime(name, first, *(_lambda(x) for x in others)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """``not``."""
        self.generic_visit(node)
        return ast.copy_location(_runtime("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """``a < b < c`` is ``a < b and b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 1 or _binds(node):
            return node
        names = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        made = _runtime("compare", names, node.left, *(_lambda(x) for x in node.comparators))
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> Any:
        """What is called is rewritten as well."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _KEPT_CALLS:
            if node.func.id == "super" and not node.args and self.first:
                node.args = [load("__class__"), load(self.first)]
            return ast.fix_missing_locations(node)
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == RUNTIME
        ):
            return node
        called = ast.fix_missing_locations(ast.copy_location(_runtime("call"), node.func))
        called.args.append(node.func)
        node.func = called
        return node


def _texts(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def _place(nodes: Sequence[Any], at: ast.AST) -> list[Any]:
    for node in nodes:
        ast.copy_location(node, at)
        node.end_lineno, node.end_col_offset = node.lineno, node.col_offset  # calls are shown at their function's end
        ast.fix_missing_locations(node)
    return list(nodes)


def _binds(node: ast.AST) -> bool:
    return any(isinstance(x, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for x in ast.walk(node))


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

"""Functions rewritten from their source, with their own globals, closure, defaults and line numbers."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import sys
import textwrap
import weakref
from collections import deque
from copy import deepcopy
from threading import RLock
from types import CellType, CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any

from argosy.jit.conversion import runtime
from argosy.jit.conversion.jumps import RUNTIME
from argosy.jit.conversion.rewriter import make_function, rewrite_function
from argosy.jit.conversion.scan_names import contains
from argosy.jit.reporting import levels, show
from argosy_hwadapt.fork import renew_in_child
from argosy_phi_ops.capture.tracer import active_tracer

__all__ = ["convert_function", "converted_callee", "function_of", "ignored", "rewritten_source", "syntax"]

_OURS = frozenset(
    {
        "argosy", "argosy_autograd", "argosy_autoparallel", "argosy_cinn", "argosy_hwadapt", "argosy_infer",
        "argosy_phi_ops", "argosy_pir", "argosy_tensorcore", "numpy",
    }
)  # fmt: skip
ignored: set[str] = set()
"""Modules whose functions are run as they are; see ``ignore_module``."""

_made: weakref.WeakKeyDictionary[CodeType, dict[bool, CodeType | None]] = weakref.WeakKeyDictionary()
"""Rewritten code, of code that lives."""
FILES_KEPT = 64
"""Files whose lines are kept for the sake of functions that are captured."""
_files: deque[str] = deque()
_parsing = renew_in_child(RLock())
"""Held by the one thread that turns text into a tree or a tree into code: CPython 3.11 counts how deep it is for all
threads together, and refuses where a finaliser lets another one run in between (its issue 106905)."""
_KEPT = "_argosy_converted"
_SYNTAX = "_argosy_syntax"


class _RewrittenForms(dict[bool, FunctionType]):
    """A function's rewritten forms, in its own ``__dict__``: they share its closure, and with it what may hold the
    function, so that a table beside it would keep all of that alive for ever.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = weakref.ref(function)

    def are_of(self, function: FunctionType) -> bool:
        """Whether they are this function's: ``functools.wraps`` copies the ``__dict__`` to another one."""
        return self._function() is function


def converted_callee(function: Any) -> Any:
    """What a rewritten function calls instead of ``function`` during a capture."""
    tracer = active_tracer()
    everything = not getattr(tracer, "breaks", False)
    if function in _BUILTINS if type(function) in (type, type(len)) else False:
        return _BUILTINS[function] if everything or function in _ALWAYS else function
    if isinstance(function, functools.partial):
        return functools.partial(converted_callee(function.func), *function.args, **function.keywords)
    plain = getattr(function, "_captured_function", None)  # a StaticFunction runs as its function within a capture
    return convert_function(function if plain is None else plain, everything)


def convert_function(function: Any, everything: bool) -> Any:
    """``function`` (or a method) rewritten; itself where it is not a user's, has no source, or is marked."""
    if isinstance(function, MethodType):
        inner = convert_function(function.__func__, everything)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if not isinstance(function, FunctionType) or not _is_users(function):
        return function
    known = function.__dict__.get(_KEPT)
    if known is None or not known.are_of(function):
        known = function.__dict__[_KEPT] = _RewrittenForms(function)
    if everything not in known:
        known[everything] = _convert(function, everything) or function
    return known[everything]


def _is_users(function: FunctionType) -> bool:
    name = function.__module__ or ""
    top = name.partition(".")[0]
    if (
        top in _OURS
        or top in sys.stdlib_module_names - {"__main__"}
        or getattr(function, "_argosy_not_to_static", False)
    ):
        return False
    return not any(name == module or name.startswith(module + ".") for module in ignored)


def _convert(function: FunctionType, everything: bool) -> FunctionType | None:
    made_of_it = _made.setdefault(function.__code__, {})
    if everything not in made_of_it:
        made_of_it[everything] = _compile(function, everything)
    code = made_of_it[everything]
    if code is None:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(_RUNTIME)
    closure = tuple(cells.get(name) or CellType() for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
    return made


def _compile(function: FunctionType, everything: bool) -> CodeType | None:
    node = syntax(function)
    if node is None or contains(node.body, ast.Yield, ast.YieldFrom, ast.Await):
        return None
    node = rewrite_function(node, everything)
    if levels.code:
        show(ast.unparse(ast.fix_missing_locations(node)))
    return _code_of(function, node, RUNTIME)


def _code_of(function: FunctionType, node: ast.FunctionDef, *free: str) -> CodeType | None:
    """The code of a definition that stands where ``function`` does, with more free variables."""
    code = function.__code__
    node.name = "_argosy_function"  # its own name may mean a global within it, as in a method called like a function
    module = _wrap_in_module(node, sorted({*code.co_freevars, *free}))
    with _parsing:
        compiled = compile(module, code.co_filename, "exec")
    found = _find(compiled, node.name)
    return found and found.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def function_of(
    function: FunctionType, node: ast.FunctionDef, cells: dict[str, CellType], defaults: bool = True
) -> FunctionType:
    """The function that a definition makes in the place of ``function``: with its globals, its closure and ``cells``,
    and its ``defaults``. :func:`syntax` finds the definition again."""
    kept = deepcopy(node)
    code = _code_of(function, node, *cells)
    assert code is not None
    known = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) | cells
    closure = tuple(known[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, None, closure)
    if defaults:
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__dict__[_SYNTAX] = kept
    return made


def syntax(function: FunctionType) -> ast.FunctionDef | None:
    """The definition, at its lines in the file; None for lambdas and where there is no source."""
    if _SYNTAX in function.__dict__:
        return deepcopy(function.__dict__[_SYNTAX])  # type: ignore[no-any-return]
    try:
        first = function.__code__.co_firstlineno
        with _parsing:
            tree = ast.parse(textwrap.dedent("".join(_source_lines(function))))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef) or node.name != function.__code__.co_name:
        return None
    ast.increment_lineno(tree, first - 1)
    node.decorator_list = []
    node.returns = None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [x and ast.Constant(None) for x in node.args.kw_defaults]
    return node


def _source_lines(function: FunctionType) -> list[str]:
    """The lines of the definition. `inspect.getsourcelines` looks through all modules first, for the one that is known
    here."""
    code = function.__code__
    lines = _file_lines(code.co_filename, function.__globals__)
    if len(lines) < code.co_firstlineno:
        raise OSError(f"the source of {code.co_qualname} is not there")
    return inspect.getblock(lines[code.co_firstlineno - 1 :])


def _file_lines(file: str, namespace: dict[str, Any]) -> list[str]:
    """The lines of a file. `linecache` has them afterwards, but for the files that were read here longest ago: of
    functions that are written by programs, each may have a file of its own."""
    linecache.checkcache(file)
    before = file in linecache.cache
    lines = linecache.getlines(file, namespace)
    if not before and file in linecache.cache:
        _files.append(file)
        while len(_files) > FILES_KEPT:
            linecache.cache.pop(_files.popleft(), None)
    return lines


def _wrap_in_module(node: ast.FunctionDef, free: list[str]) -> ast.Module:
    """A module whose only function takes the free variables and defines ``node``."""
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    give = ast.Return(ast.Name(node.name, ast.Load()))
    factory = make_function("_argosy_factory", arguments, [node, give])
    ast.copy_location(factory, node)
    return ast.fix_missing_locations(ast.Module([factory], []))


def _find(code: CodeType, name: str) -> CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            return constant if constant.co_name == name else _find(constant, name)
    return None


def rewritten_source(function: Any) -> str:
    """The rewritten function as text, as ``full_graph=True`` captures it; its own source where it is left alone."""
    plain = function.__func__ if isinstance(function, MethodType) else function
    node = syntax(plain) if isinstance(plain, FunctionType) else None
    if node is None:
        return inspect.getsource(plain)
    return ast.unparse(ast.fix_missing_locations(rewrite_function(node, True)))


_ALWAYS = frozenset({builtins.range})
_BUILTINS: dict[Any, Any] = {
    builtins.range: runtime.range_,
    builtins.int: runtime.int_,
    builtins.float: runtime.float_,
    builtins.bool: runtime.bool_,
    builtins.len: runtime.len_,
    builtins.print: runtime.print_,
}
_RUNTIME = SimpleNamespace(**{name: getattr(runtime, name) for name in runtime.__all__}, call=converted_callee)

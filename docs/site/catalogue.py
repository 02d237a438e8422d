"""The public names, each once: where it is found, under which other names, and what is known of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "argosy_hwadapt", "argosy_tensorcore", "argosy_pir", "argosy_phi_ops", "argosy_autograd", "argosy_cinn",
    "argosy_autoparallel", "argosy_infer",
)  # fmt: skip


@dataclass
class Entry:
    """A public thing: the ``path`` that users write, its value, and its other paths."""

    path: str
    value: Any
    kind: str
    others: list[str] = field(default_factory=list)

    @property
    def home(self) -> str:
        """The module of its path."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @property
    def module(self) -> str:
        """Where it is defined."""
        body = getattr(self.value, "body", self.value)
        return getattr(body, "__module__", None) or ""

    @property
    def source(self) -> str:
        """The file and line, within the repository; empty where it has none."""
        body = inspect.unwrap(getattr(self.value, "body", self.value)) if callable(self.value) else None
        try:
            path = Path(inspect.getsourcefile(body) or "")
            return f"{path.resolve().relative_to(ROOT).as_posix()}:{_line(body)}"
        except (TypeError, OSError, ValueError):
            return ""


def _line(body: Any) -> int:
    code = getattr(body, "__code__", None)
    return code.co_firstlineno if code is not None else inspect.getsourcelines(body)[1]


@cache
def entries() -> list[Entry]:
    """All public things of argosy and of its packages, each under the path that is shortest."""
    found: dict[Any, Entry] = {}
    known: set[str] = set()
    for path, value in _names():
        kind = _kind(value)
        if kind == "module" or path in known:  # what the table names hides the operator of that name
            continue
        known.add(path)
        key = id(value) if kind not in ("constant", "absent") else path
        entry = found.setdefault(key, Entry(path, value, kind))
        if entry.path != path and path not in entry.others:
            entry.others.append(path)
    for entry in found.values():
        entry.path, *entry.others = sorted({entry.path, *entry.others}, key=lambda p: _order(p, entry.value))
    return sorted(found.values(), key=lambda entry: (entry.home, entry.name.lower(), entry.path))


def _order(path: str, value: Any) -> tuple[Any, ...]:
    """The framework's names before its packages', the defining name before aliases, short ones before long ones."""
    own = getattr(value, "__name__", path.rpartition(".")[2])
    parts = path.split(".")
    return "." not in path, parts[0] != "argosy", parts[1] in _LATER, parts[-1] != own, path.count("."), path


_LATER = frozenset(
    {"_C_ops", "_legacy_C_ops", "base", "compat", "tensor", "common_ops_import", "incubate", "framework", "pir"}
)


_DEFINING = frozenset(
    {"argosy.optimizer.lr", "argosy.nn.initializer", "argosy.nn.init", "argosy.vision.ops", "argosy.regularizer"}
)
"""Modules that have a list of names of their own instead of rows of the table."""


def _names() -> Iterator[tuple[str, Any]]:
    from argosy.api import targets
    from argosy.api.addresses import ADDRESSES
    from argosy.api.names import NAMES
    from argosy_phi_ops import listing
    from argosy_phi_ops.declare.composition import find_function

    tables = {*NAMES, *ADDRESSES}
    for module in (*NAMES, *ADDRESSES):
        page = import_module(module)
        for name in targets(module):
            value = getattr(page, name)
            if not name.startswith("_"):
                yield f"{module}.{name}", value
            if isinstance(value, ModuleType) and value.__name__ in _DEFINING and value.__name__ not in tables:
                tables.add(value.__name__)
                yield from ((f"{value.__name__}.{own}", getattr(value, own)) for own in value.__all__)
    for module, names in (("argosy", listing.functions()), ("argosy.nn.functional", listing.layer_functions())):
        for name in names:
            value = find_function(name)
            if value is not None:
                yield f"{module}.{name}", value
    for package in PACKAGES:
        page = import_module(package)
        for name in page.__all__:
            yield f"{package}.{name}", getattr(page, name)


def inplace(entry: Entry) -> str:
    """The name of the in-place form of an operator; empty where it has none."""
    return f"{entry.name}_" if entry.kind == "operator" and getattr(entry.value, "inplace", False) else ""


@cache
def methods() -> frozenset[str]:
    """The names that are methods of tensors."""
    from argosy_phi_ops import listing

    return frozenset(listing.methods())


def _kind(value: Any) -> str:
    from argosy_phi_ops.declare.composition import Composition
    from argosy_phi_ops.declare.operator import Operator

    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, Operator | Composition):
        return "operator"
    if isinstance(value, type):
        return "class"
    if callable(value):
        return "absent" if _is_absent(value) else "function"
    return "constant"


def _is_absent(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.endswith("/api/absent.py")


def signature(value: Any) -> str:
    """The signature as text; (...) where Python knows none."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"'([^']*)'", r"\1", text)
    return re.sub(r"<[^<>]*(?:<[^<>]*>)?[^<>]*>", "...", text)


def documentation(value: Any) -> str:
    """The docstring, and of a class that of what makes one."""
    made = vars(value).get("__init__") if isinstance(value, type) else None
    return f"{inspect.getdoc(value) or ''} {inspect.getdoc(made) or '' if made is not None else ''}"


def parameters(value: Any) -> list[tuple[str, str, str]]:
    """Name, annotation and default of each parameter; protocols are not made."""
    if getattr(value, "_is_protocol", False):
        return []
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        (stars.get(p.kind, "") + p.name, _note(p.annotation), _default(p.default)) for p in found if p.name != "self"
    ]


def returns(value: Any) -> str:
    """The annotation of what is returned."""
    try:
        return _note(inspect.signature(value).return_annotation)
    except (TypeError, ValueError):
        return ""


def _note(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.strip("'\"")


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    text = repr(value)
    return text if len(text) < 60 and " at 0x" not in text else "..."


def errors(value: Any) -> list[str]:
    """The errors that the body itself raises, by name."""
    import ast
    import textwrap

    body = inspect.unwrap(getattr(value, "body", value))
    if isinstance(body, type):
        body = body.__init__ if "__init__" in vars(body) else None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(body)))
    except (TypeError, OSError, SyntaxError, ValueError):
        return []
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    names = [ast.unparse(exc.func if isinstance(exc, ast.Call) else exc) for exc in raised]
    return sorted({name for name in names if re.fullmatch(r"[A-Z]\w+", name)})

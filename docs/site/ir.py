"""Pages of the dialects of the IR: every operation, and of every primitive its rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from catalogue import ROOT

_ABOUT = {
    "builtin": "What every program has: constants, calls, the return.",
    "control": "Branches and loops.",
    "ad": "Derivatives that were asked for and are not expanded yet.",
    "prim": "The primitives: the closed set of operations that every part has rules for.",
    "test": "Operations for the tests of passes.",
}


def pages() -> dict[str, str]:
    """Name and text of each page."""
    found = {
        "ir_prim": _primitives(lambda c: c != "elementwise"),
        "ir_prim_elementwise": _primitives("elementwise".__eq__),
    }
    return found | {f"ir_{name}": _dialect(name) for name in ("builtin", "control", "ad", "test")}


def _dialect(name: str) -> str:
    import argosy_autograd.dialect  # noqa: F401
    from argosy_pir.dialect import get_dialect

    dialect = get_dialect(name)
    parts = [f"# Dialect {name}\n\n{_ABOUT[name]}\n"]
    assert dialect is not None, name
    for key in sorted(dialect.ops):
        found = dialect.ops[key]
        parts.append(f"## {found.name}\n\n{_described(found)}")
    return "\n".join(parts)


def _described(op: Any) -> str:
    doc = _plain(getattr(op, "doc", "") or "")
    attributes = dict(op.attributes) if isinstance(op.attributes, dict) else {}
    rows = [
        ("operands", ", ".join(f"`{o}`" for o in op.operands) or "none"),
        ("attributes", ", ".join(f"`{k}`: {v}" for k, v in attributes.items()) or "none"),
        ("traits", ", ".join(sorted(op.traits)) or "none"),
    ]
    table = "\n".join(f"| {k} | {v} |" for k, v in rows)
    return f"{doc}\n\n| | |\n|---|---|\n{table}\n"


def _primitives(wanted: Callable[[str], bool]) -> str:
    """Those of the categories that are wanted."""
    from argosy_autograd.rules import NOT_APPLICABLE, jvp, vjp
    from argosy_phi_ops.primitives import PRIMITIVES
    from argosy_phi_ops.reference.kernels import KERNELS

    title = "# Dialect prim" + (": elementwise" if wanted("elementwise") else "")
    head = (
        f"{title}\n\n{_ABOUT['prim']} There are {len(PRIMITIVES)}. Operators are written with them, so that an "
        "operator needs no rule anywhere. Of each this page says what it takes, how its type follows, its axes (by "
        "which it is split over ranks and made a loop), and where its reference kernel, its derivatives and "
        "its code in the "
        "compiler are.\n"
    )
    parts = [head]
    categories = sorted({p.category for p in PRIMITIVES.values() if wanted(p.category)})
    for category in categories:
        parts.append(f"## {category}\n")
        for name, primitive in sorted(PRIMITIVES.items()):
            if primitive.category != category:
                continue
            kept = {k: v for k, v in primitive.attributes.items()}
            required = [k for k, v in kept.items() if v is primitive.REQUIRED]
            defaults = [f"`{k}={v!r}`" for k, v in kept.items() if v is not primitive.REQUIRED]
            reason = NOT_APPLICABLE.get(name)
            rows = [
                ("operands", ", ".join(f"`{o}`" for o in primitive.operands) + (" ..." if primitive.variadic else "")),
                ("attributes", ", ".join([*(f"`{k}`" for k in required), *defaults]) or "none"),
                ("type rule", _place(primitive.rule)),
                ("axes", _place(primitive._axes) if primitive._axes is not None else "none: ranks gather its operands"),
                ("effect", "yes: its order is kept" if primitive.effect else "none"),
                ("reference kernel", _place(KERNELS[name])),
                ("derivative, backward", _place(vjp.find(name)) if name in vjp else f"none: {reason}"),
                ("derivative, forward", _place(jvp.find(name)) if name in jvp else f"none: {reason}"),
                ("lowering", _lowering(name)),
            ]
            table = "\n".join(f"| {k} | {v} |" for k, v in rows)
            parts.append(f"### prim.{name}\n\n{_plain(primitive.doc)}\n\n| | |\n|---|---|\n{table}\n")
    return "\n".join(parts)


def _plain(doc: str) -> str:
    """A docstring as Markdown: literals by one backtick, roles as their names, everything else as it stands."""
    text = inspect.cleandoc(doc)
    text = re.sub(r":\w+:`~?([^`<]*)(?:<[^`]*>)?`", r"`\1`", text)
    pieces = re.split(r"(``.+?``|`[^`\n]+`)", text, flags=re.DOTALL)
    shown = []
    for piece in pieces:
        if piece.startswith("`"):
            shown.append("`" + " ".join(piece.strip("`").split()).replace("|", "\\|") + "`")
        else:
            shown.append(re.sub(r"([*_<\[\]|$\\#])", r"\\\1", piece))
    return "".join(shown)


def _place(rule: Any) -> str:
    """File and line of a function."""
    target = inspect.unwrap(getattr(rule, "__func__", rule))
    target = getattr(target, "func", target)
    try:
        path = Path(inspect.getsourcefile(target) or "").resolve().relative_to(ROOT)
        return f"`{_short(path)}:{inspect.getsourcelines(target)[1]}`"
    except (TypeError, OSError, ValueError):
        return f"`{getattr(rule, '__name__', type(rule).__name__)}` of numpy"


def _short(path: Path) -> str:
    return path.as_posix().partition("/src/")[2]


def _lowering(name: str) -> str:
    from argosy_cinn.loops.elementwise import OPERATIONS

    found = (
        [f"a term of a loop nest, `argosy_cinn/loops/elementwise.py` ({_place(OPERATIONS[name])})"]
        if name in OPERATIONS
        else []
    )
    found += [f"`{module}`" for module in _compiler_modules().get(name, [])[:6]]
    return ", ".join(found) or "by the forms of `argosy_cinn/lowering`, or a call of the host"


@cache
def _compiler_modules() -> dict[str, list[str]]:
    """By primitive, the modules of the compiler that name it."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "packages/cinn/src/argosy_cinn").rglob("*.py")):
        for name in set(re.findall(r'"prim\.(\w+)"', path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(_short(path.relative_to(ROOT)))
    return found

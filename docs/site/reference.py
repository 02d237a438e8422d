"""The reference: every public name on a page of its module, with what Python and the declarations know of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

import catalogue
import examples
from catalogue import Entry
from glossary import meaning
from ir import _plain

PER_PAGE = 22
LONGEST = 110
"""Characters of a signature that stand in one line; longer ones are shown with their types a second time."""
BAR = "\\|"
PLAIN_HEAD = ("| parameter | type | default |", "|---|---|---|")
PROMOTIONS = {
    "none": "operands keep their dtypes",
    "binary": "operands of different dtypes are brought to one, as Paddle does",
    "widest": "operands are brought to the widest dtype among them",
    "same": "operands have one dtype",
    "float": "integers become the default floating dtype",
    "widest_float": "operands are brought to the widest floating dtype",
    "wide_float": "integers become float64 or the default floating dtype by their width",
    "true_division": "integers are divided as floating numbers",
    "like_first": "other operands get the dtype of the first",
    "condition_first": "the first operand is a condition; the others are brought to one dtype",
}


def write(folder: Path) -> list[str]:
    """Write the pages, give their names."""
    sessions = examples.sessions()
    failed = [text for text, _ in sessions.values() if text.startswith("FAILED")]
    if failed:
        raise examples.ExampleError("\n".join(failed))
    names = [
        "settings",
        "commands",
        "ir_prim",
        "ir_prim_elementwise",
        "ir_builtin",
        "ir_control",
        "ir_ad",
        "ir_test",
        "tensor",
    ]
    (folder / "tensor.md").write_text(_tensor_page(), encoding="utf-8")
    for title, name, entries in pages():
        about = _about(entries[0].home) if name in (entries[0].home, f"{entries[0].home}-1") else ""
        text = f"# {title}\n\n{about}\n" + "\n".join(_entry(e, *sessions[e.path]) for e in entries)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        names.append(name)
    return names


def pages() -> Iterator[tuple[str, str, list[Entry]]]:
    """Title, name and entries of each page: a module, or as many of its families as fit."""
    for home, of_home in groupby(catalogue.entries(), key=lambda e: e.home):
        found = sorted(of_home, key=lambda e: (_family(e), e.name.lower()))
        families = [list(group) for _, group in groupby(found, key=_family)]
        batches: list[list[Entry]] = [[]]
        for family in families if len(found) > PER_PAGE else [found]:
            if batches[-1] and len(batches[-1]) + len(family) > PER_PAGE:
                batches.append([])
            batches[-1] += family
        halves = [batch[i : i + PER_PAGE] for batch in batches for i in range(0, len(batch), PER_PAGE)]
        for number, batch in enumerate(halves, 1):
            if len(halves) == 1:
                yield home, home, batch
            else:
                first, last = _family(batch[0]), _family(batch[-1])
                yield f"{home}: {first}" + (f" to {last}" if last != first else ""), f"{home}-{number}", batch


def _family(entry: Entry) -> str:
    if entry.kind == "constant":
        return "constants"
    module = entry.module
    if ".ops." in module:
        return module.partition(".ops.")[2]
    if ".compositions." in module:
        return module.partition(".compositions.")[2]
    return module.rpartition(".")[2] or "others"


def _about(module: str) -> str:
    import importlib

    doc = inspect.getdoc(importlib.import_module(module)) or ""
    return _prose(doc.partition("::")[0]) if ">>>" not in doc else ""


def _prose(doc: str) -> str:
    """A docstring as Markdown: paragraphs, lists and code."""
    parts: list[str] = []
    literal = False
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        if block.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif literal and block.startswith((" ", "\t")):
            parts.append(f"```python\n{inspect.cleandoc(block)}\n```")
            continue
        elif re.match(r"(Args|Parameters|Returns|Raises|Yields|Example|Examples|Note|Attributes):?\n", block):
            head, _, body = block.partition("\n")
            parts.append(f"**{head.strip(':')}**\n\n{_items(inspect.cleandoc(body))}")
        elif re.match(r"\s*[-*] ", block):
            parts.append(_items(block))
        else:
            parts.append(_lines(block))
        literal = block.rstrip().endswith("::")
        if literal:
            parts[-1] = parts[-1].rstrip(":") + ":"
    return "\n\n".join(parts)


def _lines(block: str) -> str:
    """Lines that begin with ``name: `` are a list of parameters; others are a paragraph."""
    lines = [line.strip() for line in block.splitlines()]
    if sum(bool(re.match(r"\w+: ", line)) for line in lines) >= 1 and re.match(r"\w+: ", lines[0]):
        joined: list[str] = []
        for line in lines:
            if re.match(r"\w+(, \w+)*: ", line) or not joined:
                joined.append(line)
            else:
                joined[-1] += " " + line
        return "\n".join(f"- {_plain(line)}" for line in joined)
    text = _plain("\n".join(lines))
    return re.sub(r"^(\d+)\. ", r"\1\\. ", re.sub(r"^([-+>=])", r"\\\1", text, flags=re.MULTILINE), flags=re.MULTILINE)


def _items(body: str) -> str:
    """An indented list of ``name: meaning``, or of dashes."""
    items: list[str] = []
    for line in body.splitlines():
        if items and line.startswith((" ", "\t")):
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip().removeprefix("- "))
    return "\n".join(f"- {_plain(item)}" for item in items)


def _entry(entry: Entry, session: str, observed: str) -> str:
    parts = [_heading(entry), _prose(inspect.getdoc(entry.value) or "") if entry.kind != "constant" else ""]
    parts += [_facts(entry), observed, _parameters(entry)]
    if entry.kind == "class":
        parts.append(_members(entry.value))
    if session:
        parts.append(f"```pycon\n{session}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(entry: Entry) -> str:
    kind = {"class": "class", "constant": "data"}.get(entry.kind, "function")
    text = "" if kind == "data" else catalogue.signature(entry.value)
    shown = re.sub(r"\s+", " ", text)
    if len(shown) > LONGEST:
        shown = _broken(shown)
    # The directive registers the name, so that the index and the search find it; the text is shown as Python writes it.
    safe = _safe_signature(entry.value) if kind != "data" else ""
    return f"## {entry.name}\n\n```{{py:{kind}}} {entry.path}{safe}\n```" + (
        f"\n\n```python\n{entry.path}{shown}\n```" if safe and len(shown) > LONGEST else ""
    )


def _broken(signature: str) -> str:
    """A line for each parameter."""
    text, depth = "", 0
    for at, sign in enumerate(signature):
        depth += (sign in "([{") - (sign in ")]}")
        if not depth:
            return f"{text}\n{signature[at:]}"
        text += sign + ("\n    " if not at else "\n   " if depth == 1 and sign == "," else "")
    return text


def _safe_signature(value: Any) -> str:
    """Names and plain defaults, which any parser takes."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(*args, **kwargs)"
    shown, keyword = [], False
    for p in found:
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not keyword:
            shown.append("*")
            keyword = True
        keyword |= p.kind is p.VAR_POSITIONAL
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.default is not p.empty:
            default = repr(p.default)
            text += f"={default}" if re.fullmatch(r"[\w.'\"+-]+|\(\)|\[\]", default) else "=..."
        shown.append(text)
    return f"({', '.join(shown)})"


def _facts(entry: Entry) -> str:
    """What the declaration says, as sentences."""
    return " ".join([*_declared(entry), *_called(entry), *_named(entry)])


def _declared(entry: Entry) -> Iterator[str]:
    """Of an operator: shapes, dtypes, randomness, memory."""
    op = entry.value
    if entry.kind != "operator" or not hasattr(op, "axes"):
        return
    if op.axes:
        yield f"Shapes, in axis notation: `{op.axes}`."
    if op.promote in PROMOTIONS:
        yield f"Dtypes: {PROMOTIONS[op.promote]}."
    if op.random:
        yield "Draws from the generator of `paddle.seed`."
    if op.view:
        yield "The result shares memory with its operand."


def _called(entry: Entry) -> Iterator[str]:
    """What a call gives and raises."""
    result = catalogue.returns(entry.value) if entry.kind in ("operator", "function") else ""
    if result and result != "Any":
        yield f"Returns `{result}`."
    errors = {*catalogue.errors(entry.value), *(["OperatorError"] if entry.kind == "operator" else [])}
    if errors:
        yield "Raises " + ", ".join(f"`{name}`" for name in sorted(errors)) + "."


def _named(entry: Entry) -> Iterator[str]:
    """Its other names, and where it is written."""
    if entry.kind == "operator" and entry.name in catalogue.methods():
        yield f"Also the method `Tensor.{entry.name}`."
    if catalogue.inplace(entry):
        yield f"In place: `{catalogue.inplace(entry)}`."
    others = [f"`{path}`" for path in entry.others if path.rpartition(".")[2] != f"{entry.name}_"]
    if others:
        yield "Also " + ", ".join(others[:8]) + (" and others." if len(others) > 8 else ".")
    if entry.source:
        yield f"Defined in `{entry.source}`."


def _parameters(entry: Entry) -> str:
    if entry.kind == "constant" or (isinstance(entry.value, type) and issubclass(entry.value, Enum)):
        return ""
    doc = catalogue.documentation(entry.value)
    rows = [
        (f"`{name}`", f"`{note}`" if note and note != "Any" else "", f"`{default}`" if default else "",
         meaning(name, entry.path, doc))
        for name, note, default in catalogue.parameters(entry.value)
    ]  # fmt: skip
    said = any(row[3] for row in rows)
    lines = [
        "| parameter | type | default |" + (" meaning |" if said else ""),
        "|---|---|---|" + ("---|" if said else ""),
    ]
    lines += [f"| {' | '.join(cell.replace('|', BAR) for cell in row[: 4 if said else 3])} |" for row in rows]
    return "\n".join(lines) if rows else ""


def _members(value: type) -> str:
    """Methods and properties that the class itself defines."""
    rows = []
    for name, member in sorted(vars(value).items()):
        target = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (inspect.isfunction(target) or isinstance(target, property)):
            continue
        first = (inspect.getdoc(target) or "").partition("\n\n")[0]
        shown = name if isinstance(target, property) else f"{name}{_safe_signature(target)}"
        rows.append(f"| `{shown}` | {_plain(' '.join(first.split()))} |".replace("\n", " "))
    return "| member | |\n|---|---|\n" + "\n".join(rows) if rows else ""


def _tensor_page() -> str:
    """The methods of tensors, each with the function that it is."""
    from argosy_phi_ops.declare.composition import find_function
    from argosy_tensorcore.tensor import Tensor

    by_value = {id(e.value): e for e in catalogue.entries()}
    homes = {e.path: name for _, name, entries in pages() for e in entries}
    rows = []
    for name in sorted(catalogue.methods() | {n for n in dir(Tensor) if not n.startswith("_")}):
        function = find_function(name) or find_function(name.removesuffix("_"))
        entry = by_value.get(id(function)) if function is not None else None
        doc = inspect.getdoc(function if function is not None else getattr(Tensor, name, None)) or ""
        where = f"[{entry.path}]({homes[entry.path]}.md)" if entry is not None else ""
        rows.append(f"| `{name}` | {where} | {_plain(' '.join(doc.partition(chr(10) * 2)[0].split()))[:60]} |")
    return (
        "# Tensor\n\nThe methods and attributes of tensors. Most are functions whose first argument is the tensor; an "
        "example stands\nthere. A name that ends with an underscore changes the tensor in place.\n\n"
        "| method | function | |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )
